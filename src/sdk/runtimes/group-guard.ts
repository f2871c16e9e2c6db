import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";

/**
 * Ends the process groups that this process has started when it dies without a chance to do so itself (SIGKILL, out of
 * memory, a crash). One small shell for all of them. Its standard input is a pipe that this process alone holds open; the
 * kernel closes it when the process is gone, however that came about, and then the guard sends SIGTERM to every group
 * that is still registered (and SIGCONT, since a stopped process does not hear it otherwise), and SIGKILL three seconds
 * later. It leads a session of its own, so that Ctrl-C does not reach it.
 */
const GUARD_PROGRAM = `
trap '' HUP INT QUIT TERM PIPE
groups=
send() { for group in $groups; do kill -s "$1" -- "-$group"; done; }
while read -r verb named; do
  kept=
  for group in $groups; do [ "$group" = "$named" ] || kept="$kept $group"; done
  groups=$kept
  [ "$verb" = watch ] && groups="$groups $named"
done
send TERM
send CONT
left=30
while [ "$left" -gt 0 ] && [ -n "$groups" ]; do
  kept=
  for group in $groups; do kill -s 0 -- "-$group" && kept="$kept $group"; done
  groups=$kept
  [ -n "$groups" ] && sleep 0.1
  left=$((left - 1))
done
send KILL
`;

const watched = new Set<number>();
let guard: ChildProcess | undefined;

/** Makes sure that there is a guard. Rejects when the system can start no shell: then nothing else can be started safely. */
export async function readyGuard(): Promise<void> {
  if (guard !== undefined) return;
  const started = spawn("/bin/sh", ["-c", GUARD_PROGRAM], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
    env: { PATH: "/usr/bin:/bin" },
    cwd: "/",
  });
  guard = started;
  const lost = (): void => {
    if (guard !== started) return;
    guard = undefined;
    // Somebody ended it. Whoever is registered is to be covered again.
    if (watched.size > 0) void readyGuard().catch(() => undefined);
  };
  started.once("exit", lost);
  started.stdin.on("error", () => undefined);
  try {
    await once(started, "spawn");
  } catch (thrown) {
    if (guard === started) guard = undefined;
    throw thrown;
  }
  // It must not keep its owner running.
  started.unref();
  if ("unref" in started.stdin && typeof started.stdin.unref === "function") started.stdin.unref();
  for (const group of watched) tell(`watch ${group}`);
}

function tell(line: string): void {
  guard?.stdin?.write(`${line}\n`);
}

/** From now on the group ends when this process does, in whatever way. */
export function guardGroup(group: number): void {
  watched.add(group);
  tell(`watch ${group}`);
}

/** The group is gone; its number may go to another. */
export function releaseGroup(group: number): void {
  if (watched.delete(group)) tell(`release ${group}`);
}
