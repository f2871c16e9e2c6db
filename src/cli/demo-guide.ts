import { DELAY_MS, demoApprover, type DemoKind, type DemoWorkloads } from "./demo-admissions.ts";
import { COUNT_STEPS, demoScope } from "./demo-work.ts";

/** What runs, as the guide needs it. */
export interface RunningCluster {
  readonly url: string;
  readonly nodes: readonly { readonly name: string; readonly pid: number | undefined }[];
  readonly workerPid: number | undefined;
}

const meanings: { readonly [Kind in DemoKind]: string } = {
  plain: "runs at once",
  delayed: `runs in ${DELAY_MS / 1000} s`,
  dependent: "runs when the plain piece has succeeded",
  flaky: "fails twice, is tried again, succeeds",
  long: `counts ${COUNT_STEPS} seconds, a checkpoint each`,
  gated: `waits for ${demoApprover.id}'s approval`,
};

const SUBJECT = "X-Mandate-Subject: human:you";

/** The command that approves the gated piece. */
export function approvalCommand(url: string, { gated }: DemoWorkloads): string {
  const body = JSON.stringify({ outcome: "approved", inputHash: gated.inputHash });
  return (
    `curl -sS -X POST ${url}/v1/workloads/${gated.workloadId}/decision` +
    ` -H 'X-Mandate-Subject: ${demoApprover.kind}:${demoApprover.id}' -H 'Content-Type: application/json' -d '${body}'`
  );
}

/** What to try next, each a line to copy. */
export function renderGuide(cluster: RunningCluster, work: DemoWorkloads): string {
  const { url, nodes, workerPid } = cluster;
  const kinds = Object.keys(meanings) as DemoKind[];
  const node = nodes.find(({ pid }) => pid !== undefined);
  const one = (path: string): string => `curl -sS -H '${SUBJECT}' '${url}${path}'`;
  const scope = new URLSearchParams(demoScope).toString();
  const sections: readonly (readonly [string, readonly string[]])[] = [
    ["See all of it", [one(`/v1/workloads?${scope}`)]],
    ["Wait for a result", [one(`/v1/workloads/${work.flaky.workloadId}/result?waitMs=30000`)]],
    ["Why does it not run?", [one(`/v1/workloads/${work.gated.workloadId}/explain`)]],
    [`Approve the gated piece as ${demoApprover.id}`, [approvalCommand(url, work)]],
    ["Follow every change (Ctrl-C ends it)", [`curl -sSN -H '${SUBJECT}' '${url}/v1/events?${scope}'`]],
    ...(node === undefined
      ? []
      : [[`Kill node ${node.name}; the others go on, and it comes back`, [`kill -9 ${node.pid}`]] as const]),
    ...(workerPid === undefined
      ? []
      : [
          [
            "Kill the worker; the long piece goes on from its last checkpoint as soon as another has its place",
            [`kill -9 ${workerPid}`, one(`/v1/workloads/${work.long.workloadId}`)],
          ] as const,
        ]),
  ];
  const listed = kinds.map((kind) => `  ${work[kind].workloadId}  ${kind.padEnd(9)}  ${meanings[kind]}`);
  const tries = sections.flatMap(([title, lines]) => [`  # ${title}`, ...lines.map((line) => `  ${line}`)]);
  return `Sample work:\n${listed.join("\n")}\n\nTry:\n${tries.join("\n")}\n`;
}
