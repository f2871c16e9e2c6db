import { readFileSync, statSync } from "node:fs";
import type { RunningWorker } from "../sdk/worker.ts";
import { UsageError } from "./arguments.ts";

/** How often a file that holds a grant is looked at, ms. */
const LOOK_MS = 5_000;

/** The grant that a worker of the command line was given. */
export interface WorkerToken {
  /** Absent in open mode. */
  readonly token?: string;
  /** Where it was read from, when that was a file: there the next one is written before this one expires. */
  readonly file?: string;
}

/** What the system calls it, without the path; or what is wrong with what was read. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return "syscall" in thrown && "code" in thrown ? String(thrown.code) : thrown.message;
}

/**
 * The worker's grant, from a flag or a variable, or from a file that one of them names. What is empty is not there.
 *
 * @throws UsageError when it is given twice, or the file can't be read or holds nothing.
 */
export function readWorkerToken(
  flags: { readonly [flag: string]: string | undefined },
  environment: { readonly [variable: string]: string | undefined },
): WorkerToken {
  const token = flags["token"] ?? environment["MANDATE_TOKEN"] ?? "";
  const file = flags["token-file"] ?? environment["MANDATE_TOKEN_FILE"] ?? "";
  if (token !== "" && file !== "") throw new UsageError("the grant is given twice: as a token and as a file");
  if (file === "") return token === "" ? {} : { token };
  let content: string;
  try {
    content = readFileSync(file, "utf8").trim();
  } catch (thrown) {
    throw new UsageError(`--token-file: ${file} can't be read: ${reasonOf(thrown)}`, { cause: thrown });
  }
  if (content === "") throw new UsageError(`--token-file: ${file} holds no grant`);
  return { token: content, file };
}

/** Looks at the file from time to time, until the worker has ended, and has the worker use what is new in it. */
export function followTokenFile(
  worker: Pick<RunningWorker, "ended" | "useToken">,
  { token, file }: WorkerToken,
  how: { readonly say: (text: string) => void; readonly everyMs?: number },
): void {
  if (file === undefined) return;
  let used = token;
  /** What was in it the last time: a grant that is just being written is not taken by halves. */
  let seen = token;
  let complaint = "";
  const look = (first: boolean): void => {
    try {
      // A pipe would be waited for.
      if (!statSync(file).isFile()) throw new TypeError("it is no file that can be read again");
      const content = readFileSync(file, "utf8").trim();
      const isWhole = content === seen;
      seen = content;
      if ((isWhole || first) && content !== used && content !== "") {
        worker.useToken(content);
        used = content;
        how.say(`there is another grant in ${file}`);
      }
      complaint = "";
    } catch (thrown) {
      const reason = reasonOf(thrown);
      if (reason !== complaint) how.say(`the grant in ${file} can't be used, the last one is kept: ${reason}`);
      complaint = reason;
    }
  };
  // It may have been a while since it was read.
  look(true);
  const timer = setInterval(() => look(false), how.everyMs ?? LOOK_MS);
  const stop = (): void => clearInterval(timer);
  worker.ended.then(stop, stop);
}
