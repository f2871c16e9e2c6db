/**
 * Goal: a resource that asks the fence never takes a write of a stale holder, and never refuses the newest one.
 * Method: the comparison over random sequences of tokens, the bounded fence at its edges, and the SQL example on a real
 * SQL engine.
 */
import fc from "fast-check";
import initSqlJs from "sql.js";
import { describe, expect, test } from "vitest";
import { INVOICE_TABLE, putInvoice, updateInvoice, type SqlDatabase } from "../../examples/fence-sql.ts";
import { acceptsToken, Fence, FenceError } from "../../src/fence.ts";

const reasonOf = (check: () => void): string | undefined => {
  try {
    check();
    return undefined;
  } catch (thrown) {
    return thrown instanceof FenceError ? thrown.reason : String(thrown);
  }
};

describe("the comparison", () => {
  test.each([
    [undefined, 1, true],
    [1, 1, true],
    [1, 2, true],
    [2, 1, false],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, true],
  ])("with %s stored, token %s is accepted: %s", (stored, token, accepted) => {
    expect(acceptsToken(stored, token)).toBe(accepted);
  });

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])("%s is no token", (token) => {
    expect([acceptsToken(undefined, token), acceptsToken(0, token)]).toEqual([false, false]);
    expect(reasonOf(() => new Fence().check("r", token))).toBe("INVALID_TOKEN");
  });
});

describe("a fence in the process", () => {
  test("accepts, of any tokens in any order, exactly those that no higher one of their resource preceded", () => {
    const write = fc.record({
      resource: fc.constantFrom("a", "b", "__proto__"),
      token: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(fc.array(write, { maxLength: 60 }), (writes) => {
        const fence = new Fence();
        for (const [index, { resource, token }] of writes.entries()) {
          const before = writes.slice(0, index).filter((one) => one.resource === resource);
          const stale = before.some((one) => one.token > token);
          expect(reasonOf(() => fence.check(resource, token))).toBe(stale ? "STALE_TOKEN" : undefined);
        }
      }),
    );
  });

  test("says what it has seen", () => {
    const fence = new Fence();
    fence.check("invoice 7", 3);
    expect(() => fence.check("invoice 7", 2)).toThrow("token 2 is stale: invoice 7 has seen 3");
  });

  test("refuses new resources when it is full, and forgets none by itself", () => {
    const fence = new Fence({ resourcesMax: 2 });
    fence.check("a", 5);
    fence.check("b", 1);
    expect(reasonOf(() => fence.check("c", 1))).toBe("FENCE_FULL");
    fence.check("b", 2);
    expect(reasonOf(() => fence.check("a", 4))).toBe("STALE_TOKEN");
    fence.forget("b");
    fence.check("c", 1);
    expect(fence.size).toBe(2);
  });
});

describe("the SQL example", () => {
  const open = async (): Promise<SqlDatabase & { rows(): unknown }> => {
    const { Database } = await initSqlJs();
    const database = new Database();
    database.run(INVOICE_TABLE);
    return {
      change: (statement, parameters) => database.run(statement, { ...parameters }).getRowsModified(),
      rows: () => database.exec("SELECT id, cents, fencing_token FROM invoice")[0]?.values,
    };
  };

  test("lets the newest holder write, as often as it likes, and a stale one never", async () => {
    const database = await open();
    expect(putInvoice(database, { id: "7", cents: 100, fencingToken: 1 })).toBe(true);
    expect(updateInvoice(database, { id: "7", cents: 110, fencingToken: 1 })).toBe(true);
    expect(updateInvoice(database, { id: "7", cents: 200, fencingToken: 3 })).toBe(true);
    expect(updateInvoice(database, { id: "7", cents: 666, fencingToken: 2 })).toBe(false);
    expect(putInvoice(database, { id: "7", cents: 666, fencingToken: 1 })).toBe(false);
    expect(putInvoice(database, { id: "7", cents: 201, fencingToken: 3 })).toBe(true);
    expect(database.rows()).toEqual([["7", 201, 3]]);
  });

  test("changes no row that is not there, and makes it when it may", async () => {
    const database = await open();
    expect(updateInvoice(database, { id: "8", cents: 1, fencingToken: 1 })).toBe(false);
    expect(putInvoice(database, { id: "8", cents: 1, fencingToken: 4 })).toBe(true);
    expect(database.rows()).toEqual([["8", 1, 4]]);
  });
});
