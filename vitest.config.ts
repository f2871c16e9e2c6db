import { defineConfig } from "vitest/config";

/**
 * Every test in one project. Files run in processes of their own, two at a time: the integration tests start real
 * servers, and more of those at once would measure the machine instead of the program.
 */
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 20_000,
  },
});
