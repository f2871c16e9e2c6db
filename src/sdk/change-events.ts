import { monotonicMs } from "../base/clock.ts";
import type { WorkloadState } from "../core/workload/states.ts";
import type { ChangeEvent } from "./answers.ts";
import { backoffDelayMs, pause } from "./backoff.ts";
import { EventParser } from "./event-stream.ts";
import type { HttpTransport } from "./http-transport.ts";

/** Which changes to follow, and from where on. */
export interface EventFilter {
  readonly tenantId?: string;
  readonly applicationId?: string;
  readonly workloadId?: string;
  readonly state?: WorkloadState | readonly WorkloadState[];
  /** The id of the last event that was seen, as {@link FollowedEvent.id}; absent: only what is committed from now on. */
  readonly after?: string;
  readonly signal?: AbortSignal;
}

/** A change, with the id to go on from. */
export interface FollowedEvent extends ChangeEvent {
  readonly id: string | undefined;
}

/** A stream that lasted this long was a good one: the next failure is not counted with the last. */
const STEADY_MS = 10_000;

function filterQuery(filter: EventFilter): URLSearchParams {
  const query = new URLSearchParams();
  for (const name of ["tenantId", "applicationId", "workloadId"] as const) {
    const value = filter[name];
    if (value !== undefined) query.set(name, value);
  }
  const states = typeof filter.state === "string" ? [filter.state] : (filter.state ?? []);
  for (const state of states) query.append("state", state);
  return query;
}

async function* readStream(response: Response, parser: EventParser): AsyncGenerator<FollowedEvent, void> {
  if (response.body === null) return;
  const decoder = new TextDecoder();
  for await (const bytes of response.body) {
    for (const { id, data } of parser.push(decoder.decode(bytes as Uint8Array, { stream: true }))) {
      const change: unknown = JSON.parse(data);
      if (typeof change === "object" && change !== null && "workloadId" in change)
        yield { ...(change as ChangeEvent), id };
    }
  }
}

/**
 * Committed changes in order, for as long as the caller reads. A stream that breaks off is taken up again at any node
 * behind the last event that was seen (`Last-Event-ID`), so that nothing is missed and nothing comes twice.
 * Ends when the caller stops or the signal aborts.
 *
 * @throws MandateError when no node gives the stream before the client's deadline, or refuses it.
 */
export async function* followChanges(
  transport: HttpTransport,
  filter: EventFilter = {},
): AsyncGenerator<FollowedEvent, void> {
  const ending = new AbortController();
  const signal = filter.signal === undefined ? ending.signal : AbortSignal.any([ending.signal, filter.signal]);
  let last = filter.after;
  let failures = 0;
  try {
    while (!signal.aborted) {
      const response = await transport.stream({
        method: "GET",
        path: "/v1/events",
        query: filterQuery(filter),
        headers: { accept: "text/event-stream", ...(last === undefined ? {} : { "last-event-id": last }) },
        signal,
      });
      const openedAt = monotonicMs();
      const parser = new EventParser();
      try {
        for await (const event of readStream(response, parser)) {
          last = event.id ?? last;
          failures = 0;
          yield event;
        }
      } catch (thrown) {
        if (signal.aborted) return;
        // A body that is cut off comes as a TypeError of fetch; anything else is a bug and must show.
        if (!(thrown instanceof TypeError)) throw thrown;
      }
      last = parser.lastId ?? last;
      failures = monotonicMs() - openedAt > STEADY_MS ? 0 : failures + 1;
      await pause(backoffDelayMs(failures), signal);
    }
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
  } finally {
    ending.abort();
  }
}
