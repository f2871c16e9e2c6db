import { decodeWorkload } from "../src/wire/codec.ts";
import { decodePool, decodeSlot, decodeWorker } from "../src/wire/worker-codec.ts";
import { decodeRevocation } from "../src/wire/grant-codec.ts";
import type { EntryLine } from "./history.ts";

type Decoded = Pick<EntryLine, "record" | "worker" | "slot" | "pool" | "revocation">;

/** What a stored value holds, by the family of its key; nothing for other families, and for the mark of what was removed. */
export function decodeEntry(key: string, bytes: Uint8Array): Decoded {
  switch (key[0] ?? "") {
    case "w": {
      const record = decodeWorkload(bytes)?.record;
      return record === undefined ? {} : { record };
    }
    case "k": {
      const worker = decodeWorker(bytes)?.value;
      return worker === undefined ? {} : { worker };
    }
    case "s": {
      const slot = decodeSlot(bytes)?.value;
      return slot === undefined ? {} : { slot };
    }
    case "p": {
      const pool = decodePool(bytes)?.value;
      return pool === undefined ? {} : { pool };
    }
    case "g": {
      const revocation = decodeRevocation(bytes);
      return revocation === undefined ? {} : { revocation };
    }
    default:
      return {};
  }
}
