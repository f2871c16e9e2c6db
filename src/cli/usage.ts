/** A setting as a row: variable, flag, initial value, meaning. */
export type SettingRow = readonly [variable: string, flag: string, initial: string, meaning: string];

const COMMANDS = `Usage: mandate <command> [flags]

  up        A local cluster: three nats-servers, three authority nodes, one address, a demo worker
  serve     One authority node, against NATS servers that run already
  doctor    Look at everything that a deployment's safety rests on
  worker    Make any program a worker (--exec), or do the demo's work
  nats-permissions   What the NATS user of a worker, or of a node, may do: as JSON, for your own configuration
  keys      Make keys that sign grants, and publish their public parts
  grant     Issue, delegate, inspect and revoke grants

  mandate <command> --help   tells the flags of a command
  mandate --version          tells the version
`;

const UP = `Usage: mandate up [flags]

Starts a cluster on this machine and keeps it running until Ctrl-C. Its data stay in the data folder, and starting again
goes on with them. Everything listens on 127.0.0.1.

  --port <n>      The address in front of the nodes; the next free port when it is taken (7700)
  --data <folder> Where the data and the logs are kept (.mandate)
  --nodes <n>     How many authority nodes, 1 to 9 (3)
  --no-demo       No demo worker and no sample work
`;

const WORKER = `Usage: mandate worker [flags] --exec PROGRAM [ARGUMENT …]
       mandate worker [flags]

With --exec (or --) everything that follows is a program and its arguments, and it is started for each piece of work: the
work is a line of JSON on its standard input, its output is what it prints, one JSON value, and exit code 0 says that it
is done. Without, the work of the demo is done. Ends on SIGTERM and gives back what it has not finished.

  --nats <host:port,…>    NATS servers (MANDATE_NATS_SERVERS, or 127.0.0.1:4222)
  --tenant <id>           (demo)
  --application <id>      (shop)
  --name <name>           Names the worker; each process has its own (exec; demo without --exec)
  --concurrency <n>       Pieces of work at once (1; 4 without --exec)
  --lease-ms <ms>         How soon the work of a worker that died goes to another (30000; 5000 without --exec)
  --token <grant>         The worker's grant, for nodes that have keys; better in MANDATE_TOKEN, which others can't see
  --token-file <file>     The file that holds it (or MANDATE_TOKEN_FILE): what is written there later is used from then on

With --exec also:

  --capabilities <a,b,…>      What the worker can do (nothing in particular)
  --max-duration-ms <ms>      How long a piece of work may take (3600000)
  --max-memory-bytes <bytes>  How much memory the program and what it starts may use together (no bound; Linux)
  --max-cpu-ms <ms>           How much processor time (no bound)
  --grace-ms <ms>             How long programs may go on after SIGTERM to the worker (20000)
  --env <A,B,…>               Variables that the program may see beside PATH, HOME and the like (none)

What it is to NATS is told like that of a node, by flags or variables: --nats-user, --nats-password, --nats-token,
--nats-nkey, --nats-creds, --nats-tls-ca, --nats-tls-cert, --nats-tls-key, --nats-inbox; see mandate serve --help.
`;

const NATS_PERMISSIONS = `Usage: mandate nats-permissions --tenant <id> --application <id> [--name <name>]
       mandate nats-permissions --authority [--epoch <name>] [--shards <n>]

Prints, as JSON, the account, the inbox prefix and the permissions of a worker's or of a node's NATS user, with what its
account imports or exports. A nats-server takes the parts as they are; a JWT takes the same subjects.

  --tenant <id>, --application <id>   Whose worker it is
  --name <name>                       Of this worker alone: others of the application don't hear its answers
  --authority                         Of a node
  --epoch <name>, --shards <n>        Those of the nodes (main, 1)
`;

const KEYS = `Usage: mandate keys new [--out FILE]
       mandate keys jwks FILE…

new makes a private Ed25519 key, as a JWK: printed, or written to a file that only its owner may read and that must not
exist yet. jwks prints the public parts of key files as a JWKS, which is all that a node needs to verify grants.
`;

const GRANT = `Usage: mandate grant issue --key FILE --issuer KIND:ID --subject KIND:ID --tenant ID --application ID
                     --capability NAME,… --resource KIND=URI… [--constraints JSON] [--expires-in 1h] [--id ID]
                     [--revision N] [--out FILE]
       mandate grant delegate --key FILE --subject KIND:ID [--parent FILE] [--keys FILE…] [--capability NAME,…]
                     [--resource KIND=URI…] [--constraints JSON] [--expires-in 1h] [--id ID] [--out FILE]
       mandate grant inspect [FILE] [--keys FILE…]
       mandate grant revoke (--grant ID [--below-revision N] | --subject KIND:ID | --application | --tenant)
                     [--reason TEXT] [--url http://127.0.0.1:7700] [--token TOKEN]

issue and delegate sign with a private key file and need no node; the grant is printed, or written to a file that must
not exist yet. What delegate is not told is the parent's. inspect prints what a grant says, and never the grant itself.
revoke asks a node. A grant that is read comes from the file, from standard input (-), or from MANDATE_TOKEN.
`;

const wrap = (text: string, width: number, indent: string): string => {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  lines.push(line);
  return lines.map((each) => indent + each).join("\n");
};

const renderSettings = (rows: readonly SettingRow[]): string =>
  rows
    .map(
      ([variable, flag, initial, meaning]) =>
        `  ${flag}, ${variable}${initial === "" ? "" : ` (${initial})`}\n${wrap(meaning, 96, "      ")}`,
    )
    .join("\n");

/** What `--help` prints. `undefined` when there is no such command. */
export function usageOf(command: string | undefined, rows: readonly SettingRow[]): string | undefined {
  switch (command) {
    case undefined:
      return COMMANDS;
    case "up":
      return UP;
    case "worker":
      return WORKER;
    case "keys":
      return KEYS;
    case "grant":
      return GRANT;
    case "nats-permissions":
      return NATS_PERMISSIONS;
    case "serve":
      return `Usage: mandate serve [flags]\n\nA flag wins over its variable.\n\n${renderSettings(rows)}\n`;
    case "doctor":
      return (
        "Usage: mandate doctor [--json] [flags of serve]\n\n" +
        "Looks at the NATS servers and the store that these settings name, and changes nothing.\n" +
        "Ends with 1 when a check failed that --allow does not name.\n\n" +
        `${renderSettings(rows)}\n`
      );
    default:
      return undefined;
  }
}
