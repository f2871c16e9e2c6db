import { utf8Length } from "../../base/bytes.ts";
import { sha256Hex } from "../../base/hash.ts";
import { canonicalJson, type Json } from "../../base/json.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { refuse, type Refusal } from "../errors.ts";
import type { PayloadPut } from "./decision.ts";
import type { Payload } from "./record.ts";
import type { WorkloadRules } from "./rules.ts";

/** Names of the places beside a record where a payload is kept. */
export const inputSlot = "input";
export const checkpointSlot = (sequence: number): string => `checkpoint_${sequence}`;
export const outputSlot = (attemptId: string): string => `output_${attemptId}`;

/** SHA-256 over the RFC 8785 canonical form (contract 1.2). */
export const hashJson = (value: Json): string => sha256Hex(canonicalJson(value));

export interface PlacedPayload {
  readonly payload: Payload;
  readonly put?: PayloadPut;
}

/** Decides where a payload is kept: in the record up to `inlineMax` bytes, else beside it; refused when it is too large (contract 5.2). */
export function placePayload(
  value: Json,
  place: {
    readonly slot: string;
    readonly path: string;
    readonly inlineMax: number;
    readonly rules: WorkloadRules;
  },
): Result<PlacedPayload, Refusal> {
  const json = JSON.stringify(value);
  const bytes = utf8Length(json);
  if (bytes > place.rules.payloadBytesMax)
    return err(
      refuse(
        "WORKLOAD_TOO_LARGE",
        `${place.path} has ${bytes} bytes of JSON; ${place.rules.payloadBytesMax} are allowed`,
        {
          path: place.path,
          bytes,
          bytesMax: place.rules.payloadBytesMax,
        },
      ),
    );
  if (bytes <= place.inlineMax) return ok({ payload: { json } });
  return ok({ payload: { slot: place.slot, bytes }, put: { slot: place.slot, json } });
}
