import { MandateError } from "../core/errors.ts";

/** @throws MandateError `WORKLOAD_INVALID` when a text can't be a grant, nor go into a header. */
export function checkToken(token: string): void {
  if (/^[\w.-]{1,16384}$/.test(token)) return;
  throw new MandateError("WORKLOAD_INVALID", "token is no grant", {
    details: { paths: ["token"], issues: [{ path: "token", message: "is no grant" }] },
  });
}
