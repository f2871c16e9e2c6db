/**
 * A table whose rows refuse stale workers: each row keeps the highest fencing token that has written it, and a write
 * carries its token into the same statement that compares it. One statement is atomic in every SQL database, so no
 * transaction is needed, and none may be trusted in its place: a `SELECT` before the `UPDATE` would leave a gap.
 *
 * The statements run on SQLite as they stand; PostgreSQL takes them with `$1` … in the place of the names.
 */

/** As much of a database as this needs: answers how many rows a statement changed. */
export interface SqlDatabase {
  change(statement: string, parameters: { readonly [name: string]: string | number }): number;
}

export const INVOICE_TABLE = `
  CREATE TABLE invoice (
    id TEXT PRIMARY KEY,
    cents INTEGER NOT NULL,
    fencing_token INTEGER NOT NULL
  )`;

/** A row that is there: no row is changed when a higher token has written it. */
const UPDATE = `
  UPDATE invoice SET cents = $cents, fencing_token = $token
  WHERE id = $id AND fencing_token <= $token`;

/** A row that may be missing: the comparison guards the second half, and the first writer makes the row. */
const UPSERT = `
  INSERT INTO invoice (id, cents, fencing_token) VALUES ($id, $cents, $token)
  ON CONFLICT (id) DO UPDATE SET cents = excluded.cents, fencing_token = excluded.fencing_token
  WHERE invoice.fencing_token <= excluded.fencing_token`;

/** What a handler writes, with the `fencingToken` that it was given. */
export interface InvoiceWrite {
  readonly id: string;
  readonly cents: number;
  readonly fencingToken: number;
}

const parametersOf = ({ id, cents, fencingToken }: InvoiceWrite): { readonly [name: string]: string | number } => ({
  $id: id,
  $cents: cents,
  $token: fencingToken,
});

/** `false`: the row is not there, or a newer holder of the work has written it; nothing was changed. */
export const updateInvoice = (database: SqlDatabase, write: InvoiceWrite): boolean =>
  database.change(UPDATE, parametersOf(write)) === 1;

/** `false`: a newer holder of the work has written the row; nothing was changed. */
export const putInvoice = (database: SqlDatabase, write: InvoiceWrite): boolean =>
  database.change(UPSERT, parametersOf(write)) === 1;
