import type { Json } from "../base/json.ts";
import { MandateError } from "../core/errors.ts";
import type { Checkpoint, Payload, Result, Workload, WorkloadRecord } from "../core/workload/record.ts";
import { payloadKey } from "../store/keys.ts";
import { decodePayload } from "../wire/codec.ts";
import type { Entry, Shard } from "../store/store.ts";

/** Payloads that this very call brought along, so that they need not be read back: slot → JSON. */
export type KnownPayloads = ReadonlyMap<string, Json>;

/** A record and the shard that it is in. */
interface Place {
  readonly shard: number;
  readonly record: WorkloadRecord;
}

/** Turns records into what the surfaces show: payloads are read from where they are kept, the grant's token is left out. */
export class Renderer {
  readonly #shard: (index: number) => Shard;

  constructor(shard: (index: number) => Shard) {
    this.#shard = shard;
  }

  async workload(shard: number, record: WorkloadRecord, known?: KnownPayloads): Promise<Workload> {
    const read = await this.#payloads(shard, record, { payloads: payloadsOf(record), known });
    const { token: _kept, ...authorization } = record.authorization;
    const { result, ...rest } = record;
    return {
      ...rest,
      authorization,
      input: read(record.input),
      checkpoints: record.checkpoints.map((checkpoint) => ({ ...checkpoint, state: read(checkpoint.state) })),
      ...(result === undefined ? {} : { result: { ...result, output: read(result.output) } }),
    };
  }

  async checkpoint(of: Place, checkpoint: Checkpoint<Payload>, known?: KnownPayloads): Promise<Checkpoint> {
    const read = await this.#payloads(of.shard, of.record, { payloads: [checkpoint.state], known });
    return { ...checkpoint, state: read(checkpoint.state) };
  }

  async result(of: Place, result: Result<Payload>, known?: KnownPayloads): Promise<Result> {
    const read = await this.#payloads(of.shard, of.record, { payloads: [result.output], known });
    return { ...result, output: read(result.output) };
  }

  /** Input and checkpoints for a worker. */
  async context(
    shard: number,
    record: WorkloadRecord,
  ): Promise<{ readonly input: Json; readonly checkpoints: readonly Checkpoint[] }> {
    const payloads = [record.input, ...record.checkpoints.map(({ state }) => state)];
    const read = await this.#payloads(shard, record, { payloads });
    return {
      input: read(record.input),
      checkpoints: record.checkpoints.map((checkpoint) => ({ ...checkpoint, state: read(checkpoint.state) })),
    };
  }

  async #payloads(
    shard: number,
    record: WorkloadRecord,
    ask: { readonly payloads: readonly Payload[]; readonly known?: KnownPayloads | undefined },
  ): Promise<(payload: Payload) => Json> {
    const keys = new Map<string, string>();
    for (const payload of ask.payloads)
      if ("slot" in payload && ask.known?.has(payload.slot) !== true)
        keys.set(payload.slot, payloadKey(record, record.workloadId, payload.slot));
    // They were written in the commit of the record that names them and never change, so a leader read finds them, or a fresh one does.
    let entries: ReadonlyMap<string, Entry> =
      keys.size === 0 ? new Map<string, Entry>() : await this.#shard(shard).read([...keys.values()]);
    if ([...keys.values()].some((key) => !entries.has(key)))
      entries = await this.#shard(shard).read([...keys.values()], { fresh: true });
    return (payload) => {
      if ("json" in payload) return JSON.parse(payload.json) as Json;
      const known = ask.known?.get(payload.slot);
      if (known !== undefined) return known;
      const entry = entries.get(keys.get(payload.slot) ?? "");
      const json = entry === undefined ? undefined : decodePayload(entry.value);
      if (json === undefined)
        throw new MandateError("WORKLOAD_STORAGE_FAILURE", "a payload of the workload can't be read", {
          details: { slot: payload.slot },
        });
      return JSON.parse(json) as Json;
    };
  }
}

const payloadsOf = (record: WorkloadRecord): readonly Payload[] => [
  record.input,
  ...record.checkpoints.map(({ state }) => state),
  ...(record.result === undefined ? [] : [record.result.output]),
];
