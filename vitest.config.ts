import { defineConfig } from "vitest/config";

/**
 * Files run in processes of their own, two at a time: the integration tests start real servers, and more of those at
 * once would measure the machine instead of the program. When they are done come the mutants, which keep both processors
 * busy by themselves, and at last the tests with containers, a dozen of them at a time.
 */
export default defineConfig({
  test: {
    pool: "forks",
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 20_000,
    projects: [
      {
        extends: true,
        test: {
          name: "programs",
          include: ["test/**/*.test.ts"],
          exclude: ["test/container/**", "test/mutation/**"],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "mutants",
          include: ["test/mutation/**/*.test.ts"],
          maxWorkers: 1,
          // Each mutant is a build and a process of its own.
          maxConcurrency: 2,
          testTimeout: 650_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "containers",
          include: ["test/container/**/*.test.ts"],
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
