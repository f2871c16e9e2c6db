import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import type { ProcessIdentity } from "./process-identity.ts";

/**
 * Ends the started processes when their owner dies without a chance to do so itself (SIGKILL, out of memory, a crash).
 *
 * One small helper process an owner, started with the first child. Its standard input is a pipe that the owner alone
 * holds open; the kernel closes it when the owner is gone, however that came about, and then the guard ends whoever is
 * still registered: SIGCONT and SIGTERM (a paused process can't hear the second without the first), SIGKILL three
 * seconds later. It leads a session of its own, so that Ctrl-C in the owner's terminal does not reach it. It checks
 * each process's start time before it sends a signal, so that a recycled id is left alone.
 *
 * What the guard can't cover, an owner killed in the instant between a child's birth and its registration, or a guard
 * killed together with the owner, is mended by the next start in the same directory (see process-record.ts).
 *
 * The program is text, not a file: it must run the same from source and from `dist`, without a loader, in 40 ms.
 */
const GUARD_PROGRAM = `
"use strict";
const { readFileSync } = require("node:fs");
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => undefined);
const watched = new Map();
const alive = (pid, startedAt) => {
  if (process.platform !== "linux") { try { return process.kill(pid, 0); } catch { return false; } }
  try {
    const stat = readFileSync("/proc/" + pid + "/stat", "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] !== "Z" && fields[0] !== "X" && fields[19] === startedAt;
  } catch { return false; }
};
const send = (...signals) => {
  for (const [pid, startedAt] of watched)
    for (const signal of signals) if (alive(pid, startedAt)) try { process.kill(pid, signal); } catch {}
};
const end = () => {
  send("SIGTERM", "SIGCONT");
  const deadline = Date.now() + 3000;
  const timer = setInterval(() => {
    const left = [...watched].some(([pid, startedAt]) => alive(pid, startedAt));
    if (left && Date.now() < deadline) return;
    send("SIGKILL");
    clearInterval(timer);
  }, 20);
};
let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (text) => {
  const lines = (rest + text).split("\\n");
  rest = lines.pop();
  for (const line of lines) {
    const [verb, pid, startedAt] = line.split(" ");
    if (verb === "watch") watched.set(Number(pid), startedAt); else watched.delete(Number(pid));
  }
});
process.stdin.on("end", end);
process.stdin.on("error", end);
`;

const watched = new Map<number, ProcessIdentity>();
let guard: ChildProcess | undefined;

function tell(line: string): void {
  guard?.stdin?.write(`${line}\n`);
}

function startGuard(): void {
  const started = spawn(process.execPath, ["-e", GUARD_PROGRAM], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  guard = started;
  const lost = (): void => {
    if (guard === started) guard = undefined;
  };
  started.once("exit", lost);
  started.once("error", lost);
  started.stdin.on("error", lost);
  // The guard must not keep its owner running.
  started.unref();
  if ("unref" in started.stdin && typeof started.stdin.unref === "function") started.stdin.unref();
  for (const { pid, startedAt } of watched.values()) tell(`watch ${pid} ${startedAt.replaceAll(" ", "_")}`);
}

/** From now on the process ends when this one does, in whatever way. Takes effect before this call returns. */
export function guardProcess(identity: ProcessIdentity): void {
  watched.set(identity.pid, identity);
  if (guard === undefined) startGuard();
  else tell(`watch ${identity.pid} ${identity.startedAt.replaceAll(" ", "_")}`);
}

/** The process ended; its id may go to another. The guard itself ends with its owner. */
export function releaseProcess(identity: ProcessIdentity): void {
  if (watched.delete(identity.pid)) tell(`release ${identity.pid}`);
}
