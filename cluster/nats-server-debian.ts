import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { ClusterError, problemText } from "./cluster-error.ts";

const run = promisify(execFile);

const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
/** The Debian suite whose nats-server is new enough. */
const SUITE = "forky";
const APT_TIMEOUT_MS = 120_000;
const URIS_TRIED_MAX = 3;

const refuse = (message: string): ClusterError => new ClusterError("NATS_SERVER_REFUSED", message);

/** An archive that apt is set up to use, as far as it matters here. */
interface Source {
  readonly uri: string;
  readonly suites: readonly string[];
  readonly components: readonly string[];
}

/** Reads apt's one-line format; comments and `deb-src` lines give nothing. */
export function parseListFile(text: string): Source[] {
  return text.split("\n").flatMap((line) => {
    const match = /^\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s*([^#]*)/.exec(line);
    const [, uri, suite, components] = match ?? [];
    if (uri === undefined || suite === undefined || components === undefined) return [];
    return [{ uri, suites: [suite], components: components.trim().split(/\s+/) }];
  });
}

/** Reads apt's deb822 format; stanzas that are switched off give nothing. */
export function parseSourcesFile(text: string): Source[] {
  const lines = text.split("\n").filter((line) => !line.startsWith("#"));
  return lines
    .join("\n")
    .split(/\n\s*\n/)
    .flatMap((stanza) => {
      const field = (name: string): string[] => {
        const found = new RegExp(`^${name}:((?:.*)(?:\\n[ \\t].*)*)`, "im").exec(stanza)?.[1] ?? "";
        return found
          .trim()
          .split(/\s+/)
          .filter((word) => word !== "");
      };
      if (!field("Types").includes("deb") || field("Enabled")[0]?.toLowerCase() === "no") return [];
      return field("URIs").map((uri) => ({
        uri,
        suites: field("Suites"),
        components: field("Components"),
      }));
    });
}

async function configuredSources(): Promise<Source[]> {
  const parts = "/etc/apt/sources.list.d";
  const names = existsSync(parts) ? (await readdir(parts)).toSorted() : [];
  const files = ["/etc/apt/sources.list", ...names.map((name) => join(parts, name))];
  const sources: Source[] = [];
  for (const file of files.filter((name) => existsSync(name))) {
    if (file.endsWith(".sources")) sources.push(...parseSourcesFile(await readFile(file, "utf8")));
    if (file.endsWith(".list")) sources.push(...parseListFile(await readFile(file, "utf8")));
  }
  return sources;
}

/** The machine's own archives of Debian proper, likeliest first: the running release's or a rolling suite, with `main`. */
async function debianUris(): Promise<string[]> {
  const release = existsSync("/etc/os-release") ? await readFile("/etc/os-release", "utf8") : "";
  const codename = /^VERSION_CODENAME="?(\w+)"?$/m.exec(release)?.[1];
  const suites = new Set([codename, "stable", "testing", "unstable", "sid", SUITE]);
  const uris = (await configuredSources())
    .filter(({ components, suites: own }) => components.includes("main") && own.some((suite) => suites.has(suite)))
    .map(({ uri }) => uri);
  const looksOwn = (uri: string): boolean => /\/debian\/?$|debian\.list$/.test(uri);
  return [...new Set([...uris.filter(looksOwn), ...uris])].slice(0, URIS_TRIED_MAX);
}

/**
 * apt's settings for a private world: lists, caches and sources in `folder`, nothing of the system's written, none of
 * its hooks run. Signatures are checked as ever, against Debian's own keyring.
 */
async function writeSettings(folder: string, uri: string): Promise<string> {
  await mkdir(join(folder, "lists", "partial"), { recursive: true });
  await mkdir(join(folder, "cache", "archives", "partial"), { recursive: true });
  await writeFile(
    join(folder, "debian.sources"),
    `Types: deb\nURIs: ${uri}\nSuites: ${SUITE}\nComponents: main\nSigned-By: ${KEYRING}\n`,
  );
  const settings = join(folder, "apt.conf");
  await writeFile(
    settings,
    [
      "#clear APT::Update;",
      "#clear DPkg;",
      `Dir::Etc::sourcelist "${join(folder, "debian.sources")}";`,
      'Dir::Etc::sourceparts "/dev/null";',
      `Dir::State::lists "${join(folder, "lists")}";`,
      `Dir::Cache "${join(folder, "cache")}";`,
      // The folder may be closed to apt's unprivileged user; and a caller who is not root could not switch to it.
      'APT::Sandbox::User "";',
      'Acquire::Languages "none";',
      'Acquire::Retries "2";',
      'Acquire::http::Timeout "20";',
      'Acquire::https::Timeout "20";',
      "",
    ].join("\n"),
  );
  return settings;
}

async function fetchFrom(uri: string, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const settings = await writeSettings(folder, uri);
  const options = { cwd: folder, timeout: APT_TIMEOUT_MS, env: { ...process.env, LC_ALL: "C" } };
  await run("apt-get", ["-c", settings, "-q", "-o", "APT::Update::Error-Mode=any", "update"], options);
  await run("apt-get", ["-c", settings, "-q", "download", "nats-server"], options);
  const packages = (await readdir(folder)).filter((name) => name.endsWith(".deb"));
  const [file] = packages;
  if (file === undefined) throw refuse("apt-get download left no package");
  await run("dpkg", ["-x", file, join(folder, "unpacked")], options);
  return join(folder, "unpacked", "usr", "sbin", "nats-server");
}

/**
 * Fetches Debian's own nats-server package of the suite `forky` through the machine's configured archive, checked by
 * apt against Debian's keyring, and unpacks it below `folder`. Nothing is installed; root is not needed. Answers the
 * path of the program.
 *
 * @throws ClusterError `NATS_SERVER_REFUSED` on another system or when no archive gave it.
 */
export async function fetchDebianPackage(folder: string): Promise<string> {
  if (!existsSync("/usr/bin/apt-get") || !existsSync(KEYRING))
    throw refuse("this is not a Debian with its archive keyring");
  const uris = await debianUris();
  if (uris.length === 0) throw refuse("apt has no archive of Debian configured");
  const problems: string[] = [];
  for (const [index, uri] of uris.entries()) {
    try {
      return await fetchFrom(uri, join(folder, `archive-${index}`));
    } catch (thrown) {
      problems.push(problemText(thrown).trim());
    }
  }
  throw refuse(problems.join("; "));
}
