import { defineConfig } from "vitest/config";

/**
 * Files run in processes of their own, two at a time: the integration tests start real servers, and more of those at
 * once would measure the machine instead of the program. The tests with containers, a dozen of them at a time, come when
 * all others are done.
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
          exclude: ["test/container/**"],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "containers",
          include: ["test/container/**/*.test.ts"],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
