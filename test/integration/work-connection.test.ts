/**
 * Goal: a call whose grant is refused after another has taken its place is made again with that one, and no other is.
 * Method: a real nats-server, and a responder that refuses the first request as a node would.
 */
import { headers } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { MandateError } from "../../src/core/errors.ts";
import { WorkConnection } from "../../src/sdk/work-connection.ts";
import { problemOf } from "../../src/wire/problem.ts";
import { workSubject } from "../../src/wire/subjects.ts";
import { StoreSetting } from "./store-setting.ts";

const scope = { tenantId: "acme", applicationId: "shop", name: "w1" };

async function grantsSeen(
  meanwhile: (connection: WorkConnection) => void,
): Promise<{ readonly grants: readonly string[]; readonly outcome: unknown }> {
  const setting = await StoreSetting.start({ servers: 1 });
  const servers = [...setting.cluster.urls];
  const responder = await connect({ servers });
  const connection = await WorkConnection.open({
    servers,
    ...scope,
    encoding: "json",
    clientName: "test",
    token: "old",
  });
  const grants: string[] = [];
  responder.subscribe(workSubject(scope, "work.complete"), {
    callback: (_error, message) => {
      const grant = message.headers?.get("Mandate-Grant") ?? "";
      grants.push(grant);
      meanwhile(connection);
      if (grant === "new") {
        message.respond("{}");
        return;
      }
      const refused = headers();
      refused.set("Nats-Service-Error-Code", "401");
      message.respond(JSON.stringify(problemOf(new MandateError("GRANT_EXPIRED", "it is over"))), { headers: refused });
    },
  });
  await responder.flush();
  try {
    const outcome: unknown = await connection
      .call("work.complete", {}, { deadlineMs: 20_000 })
      .catch((thrown: unknown) => thrown);
    return { grants, outcome };
  } finally {
    await connection.close();
    await responder.close();
    await setting.close();
  }
}

test("with a grant that was replaced while the call was under way, the next try has the new one", async () => {
  const { grants, outcome } = await grantsSeen((connection) => connection.useToken("new"));
  expect(grants).toEqual(["old", "new"]);
  expect(outcome).toEqual({});
}, 60_000);

test("without another grant the refusal is the answer", async () => {
  const { grants, outcome } = await grantsSeen(() => undefined);
  expect(grants).toEqual(["old"]);
  expect(outcome).toMatchObject({ code: "GRANT_EXPIRED" });
}, 60_000);
