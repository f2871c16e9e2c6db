// Makes the keys, certificates and accounts that docker-compose.secure.yml mounts, in deploy/secure/keys. What is there
// stays, so that running it again with one more application adds that application. Needs `npm ci` (or `npm run build`).
//
//   node deploy/secure/make.mjs [tenant/application[/name] …]      default: demo/shop
//
// MANDATE_PUBLISHED_HOSTS names where HTTPS will be reached, separated by commas; default localhost,127.0.0.1.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const { makeProfile } = await import("../../dist/src/secure/profile.js").catch(() => {
  process.stderr.write("the program is not built: npm ci\n");
  process.exit(1);
});

const asked = process.argv.slice(2);
const workers = (asked.length === 0 ? ["demo/shop"] : asked).map((text) => {
  const [tenantId, applicationId, name, ...more] = text.split("/");
  if (!tenantId || !applicationId || name === "" || more.length > 0) {
    process.stderr.write(`${JSON.stringify(text)} is not tenant/application or tenant/application/name\n`);
    process.exit(2);
  }
  return { tenantId, applicationId, name };
});

const servers = [1, 2, 3].map((number) => ({
  name: `nats-${number}`,
  hosts: [`nats-${number}`, `nats-${number}.private`],
}));
const directory = join(here, "keys");
await makeProfile({
  directory,
  now: Date.now(),
  epoch: process.env.MANDATE_EPOCH || "main",
  shards: Number(process.env.MANDATE_SHARDS || 1),
  servers,
  nodes: ["authority-1", "authority-2", "authority-3"],
  httpHosts: (process.env.MANDATE_PUBLISHED_HOSTS || "localhost,127.0.0.1").split(","),
  workers,
});
process.stdout.write(`Keys and certificates are in ${directory}. Keep ca.key away from every server.\n`);
