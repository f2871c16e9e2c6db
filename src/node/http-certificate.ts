import { readFileSync } from "node:fs";
import type { Config } from "../config.ts";
import type { HttpCertificate } from "../http/server.ts";

/**
 * The certificate of HTTP as its files hold it now; `undefined` when the node is told of none.
 *
 * @throws the system's error when a file can't be read.
 */
export function httpCertificateOf({ httpTlsCert, httpTlsKey }: Config): HttpCertificate | undefined {
  if (httpTlsCert === undefined || httpTlsKey === undefined) return undefined;
  return { cert: readFileSync(httpTlsCert, "utf8"), key: readFileSync(httpTlsKey, "utf8") };
}
