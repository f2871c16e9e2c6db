/**
 * What the judge looks at among the parameters of a run (`RunLine.parameters`). All are optional there; lengths in ms.
 */
export interface JudgeParameters {
  /** How far a node's idea of the store's time may run ahead of the store's own stamps. */
  readonly clockErrorMaxMs: number;
  /** From the last heal, or from its own instant when that is later: how long a passed deadline or lease may wait to be acted on. */
  readonly lateMaxMs: number;
  /** From the last heal: how long claimable work may wait, and claimed work may take. */
  readonly settleMaxMs: number;
  /** After a fault ended: how long nodes may take until they serve again, and leases are therefore kept alive (contract 5.5). */
  readonly outageTailMs: number;
  /** After a stopped worker goes on: how long it may take to notice that its lease is lost. */
  readonly resumeSlackMs: number;
  /** How late a worker notes that it stopped, when its thread is busy with the work. */
  readonly busySlackMs: number;
  /** How old a node's view may be when it is shown at the end. */
  readonly viewAgeMaxMs: number;
  /** How long a commit may take until its outcome is unknown. */
  readonly commitDeadlineMs: number;
  /** The capability sets of the workers that run to the end. Absent: somebody has whatever is needed. */
  readonly workerCapabilities: readonly (readonly string[])[] | undefined;
  /** Validators (by name) that this run must have given facts to, beside those that its lines call for. */
  readonly expects: readonly string[];
}

export const defaultParameters: JudgeParameters = {
  clockErrorMaxMs: 250,
  lateMaxMs: 30_000,
  settleMaxMs: 60_000,
  outageTailMs: 30_000,
  resumeSlackMs: 2000,
  busySlackMs: 500,
  viewAgeMaxMs: 3000,
  commitDeadlineMs: 10_000,
  workerCapabilities: undefined,
  expects: [],
};

const lengthOf = (value: unknown, otherwise: number): number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : otherwise;

const textsOf = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.every((item) => typeof item === "string") ? value : undefined;

/** Reads the parameters of a run; what is absent, or of another type, is the default. */
export function judgeParametersOf(parameters: { readonly [name: string]: unknown }): JudgeParameters {
  const sets = parameters["workerCapabilities"];
  const capabilities = Array.isArray(sets) ? sets.map(textsOf).filter((set) => set !== undefined) : undefined;
  const length = (name: Exclude<keyof JudgeParameters, "workerCapabilities" | "expects">): number =>
    lengthOf(parameters[name], defaultParameters[name]);
  return {
    clockErrorMaxMs: length("clockErrorMaxMs"),
    lateMaxMs: length("lateMaxMs"),
    settleMaxMs: length("settleMaxMs"),
    outageTailMs: length("outageTailMs"),
    resumeSlackMs: length("resumeSlackMs"),
    busySlackMs: length("busySlackMs"),
    viewAgeMaxMs: length("viewAgeMaxMs"),
    commitDeadlineMs: length("commitDeadlineMs"),
    workerCapabilities: capabilities,
    expects: textsOf(parameters["expects"]) ?? defaultParameters.expects,
  };
}
