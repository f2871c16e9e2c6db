import { readdirSync, readFileSync } from "node:fs";
import { monotonicMs } from "../../base/clock.ts";

/** What the live processes of a group use together. */
export interface GroupUsage {
  /** Processor time of them and of their children that ended, ms. */
  readonly cpuMillis: number;
  readonly memoryBytes: number;
}

/** Whether this platform tells what a process group uses. */
export const canMeasureGroups = process.platform === "linux";

const INTERVAL_MS = 100;
/** Looking takes a twentieth of this thread's time at most, however many processes there are. */
const LOOK_SHARE = 20;
/** The kernel counts processor time in these, on every platform that Node runs on. */
const TICK_MS = 10;

interface Watch {
  readonly group: number;
  /** More memory than this is looked at closely: pages that processes share are then counted once. */
  readonly closeLookBytes: number;
  readonly report: (usage: GroupUsage) => void;
}

const watches = new Set<Watch>();
let timer: NodeJS.Timeout | undefined;

/** Has a group's usage reported ten times a second, or less often where very many processes run. Answers how to end it. */
export function watchGroup(watch: Watch): () => void {
  watches.add(watch);
  timer ??= setTimeout(look, INTERVAL_MS);
  return () => {
    watches.delete(watch);
    if (watches.size > 0) return;
    clearTimeout(timer);
    timer = undefined;
  };
}

interface Member {
  readonly pid: string;
  readonly cpuMillis: number;
}

function look(): void {
  const from = monotonicMs();
  const members = membersOf(new Set([...watches].map(({ group }) => group)));
  for (const watch of [...watches]) watch.report(usageOf(members.get(watch.group) ?? [], watch.closeLookBytes));
  timer = watches.size === 0 ? undefined : setTimeout(look, Math.max(INTERVAL_MS, LOOK_SHARE * (monotonicMs() - from)));
}

/** The live processes of each group. */
function membersOf(groups: ReadonlySet<number>): ReadonlyMap<number, readonly Member[]> {
  const members = new Map<number, Member[]>();
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const stat = readOrNothing(`/proc/${pid}/stat`);
    // The name in brackets may hold anything; the fields behind it are numbered from the state on.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const group = Number(fields[2]);
    if (!groups.has(group) || fields[0] === "Z") continue;
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    const known = members.get(group);
    if (known === undefined) members.set(group, [{ pid, cpuMillis: ticks * TICK_MS }]);
    else known.push({ pid, cpuMillis: ticks * TICK_MS });
  }
  return members;
}

function usageOf(members: readonly Member[], closeLookBytes: number): GroupUsage {
  const cpuMillis = members.reduce((sum, member) => sum + member.cpuMillis, 0);
  const resident = members.reduce((sum, { pid }) => sum + kilobytesOf(pid, "status", "VmRSS"), 0) * 1024;
  if (resident <= closeLookBytes) return { cpuMillis, memoryBytes: resident };
  const shares = members.map(
    ({ pid }) => kilobytesOf(pid, "smaps_rollup", "Pss") || kilobytesOf(pid, "status", "VmRSS"),
  );
  return { cpuMillis, memoryBytes: shares.reduce((sum, kilobytes) => sum + kilobytes, 0) * 1024 };
}

function kilobytesOf(pid: string, file: string, name: string): number {
  const found = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(readOrNothing(`/proc/${pid}/${file}`));
  return Number(found?.[1] ?? 0);
}

/** A process may be gone by the time that it is looked at, and another user's may not be looked into. */
function readOrNothing(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
