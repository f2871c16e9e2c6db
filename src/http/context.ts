import type { Context } from "hono";
import type { IncomingMessage } from "node:http";

/** What the server hands to the application with a request; absent when the application is called without one. */
export interface HttpEnvironment {
  Bindings: { readonly incoming?: IncomingMessage };
}

export type HttpContext = Context<HttpEnvironment>;
