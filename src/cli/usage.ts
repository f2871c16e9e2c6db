/** A setting as a row: variable, flag, initial value, meaning. */
export type SettingRow = readonly [variable: string, flag: string, initial: string, meaning: string];

const COMMANDS = `Usage: mandate <command> [flags]

  up        A local cluster: three nats-servers, three authority nodes, one address, a demo worker
  serve     One authority node, against NATS servers that run already
  doctor    Look at everything that a deployment's safety rests on
  worker    A worker that does the demo's work; an example of a process of its own

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

const WORKER = `Usage: mandate worker [flags]

Claims work of the demo (definition names that begin with "demo.") and does it. Ends on SIGTERM and gives back what it
has not finished.

  --nats <host:port,…>    NATS servers (127.0.0.1:4222)
  --tenant <id>           (demo)
  --application <id>      (shop)
  --name <name>           (demo)
  --concurrency <n>       (4)
  --lease-ms <ms>         (5000)
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
