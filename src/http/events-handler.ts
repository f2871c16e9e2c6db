import type { ChangeEvent } from "../authority/api.ts";
import { MandateError } from "../core/errors.ts";
import { parseShape } from "../wire/parse.ts";
import { mayShow } from "./access.ts";
import type { HttpAnswer } from "./answer.ts";
import { invalidAt } from "./answer.ts";
import { EventFeed, parsePositions } from "./event-feed.ts";
import { single } from "./request.ts";
import type { Exchange } from "./route.ts";
import { eventsQuery } from "./schemas.ts";

/** Which changes the client wants. */
function matcherOf(exchange: Exchange): (event: ChangeEvent) => boolean {
  const { query, services, bearer } = exchange;
  const shaped = parseShape(eventsQuery, {
    tenantId: single(query, "tenantId"),
    applicationId: single(query, "applicationId"),
    workloadId: single(query, "workloadId"),
    state: query.get("state"),
  });
  if (!shaped.ok) throw MandateError.of(shaped.error);
  const { tenantId, applicationId, workloadId, state } = shaped.value;
  const states = state === undefined ? undefined : new Set(state);
  const shown = mayShow(exchange, "workload:read");
  const mayBeTold = (event: ChangeEvent): boolean => {
    if (bearer === undefined) return true;
    const traits = services.authority.traitsOf(event.workloadId);
    return traits !== undefined && shown(traits);
  };
  return (event) =>
    (tenantId === undefined || event.tenantId === tenantId) &&
    (applicationId === undefined || event.applicationId === applicationId) &&
    (workloadId === undefined || event.workloadId === workloadId) &&
    states?.has(event.state) !== false &&
    mayBeTold(event);
}

/** Where the client stands: what it says, or now. */
async function positionsOf(exchange: Exchange): Promise<readonly number[]> {
  const { context, services, query } = exchange;
  const { authority, config } = services;
  const lastEventId = context.req.header("last-event-id") ?? single(query, "Last-Event-ID");
  if (lastEventId === undefined || lastEventId === "") {
    // A view that is being loaded would tell what is long past as if it happened now.
    const { ready, reasons } = authority.readiness();
    if (ready) return authority.position();
    throw new MandateError("AUTHORITY_NOT_READY", "this node does not know where the present is", {
      details: { reasons },
    });
  }
  const positions = parsePositions(lastEventId, authority.shards);
  if (positions === undefined) throw invalidAt("Last-Event-ID", "is not an id of this deployment's events");
  // A client may come from a node that is ahead of this one: then its next events are those after its own position.
  const waits = positions.map((revision, shard) =>
    authority.waitForPosition({ shard, revision }, config.minRevisionWaitMs),
  );
  if ((await Promise.all(waits)).every(Boolean)) return positions;
  throw new MandateError("AUTHORITY_NOT_READY", "this node has not seen the events that the client has", {
    details: { positions: authority.position() },
  });
}

/** Committed changes as server-sent events (contract 6.2). */
export async function streamEvents(exchange: Exchange, openFeeds: Set<EventFeed>): Promise<HttpAnswer> {
  const { context, services, bearer } = exchange;
  const { config, meters, stopping } = services;
  const isWanted = matcherOf(exchange);
  const matches = (event: ChangeEvent): boolean => {
    try {
      return isWanted(event);
    } catch (thrown) {
      // Whether the caller may know of it can't be told now: the client comes again, from where it stands.
      if (!(thrown instanceof MandateError)) throw thrown;
      onStop();
      return false;
    }
  };
  const positions = await positionsOf(exchange);
  const headers = { "cache-control": "no-store", "x-accel-buffering": "no" };
  const answer: HttpAnswer = { status: 200, contentType: "text/event-stream", headers };
  if (context.req.method === "HEAD") return answer;
  if (openFeeds.size >= config.eventStreamsMax)
    throw new MandateError("AUTHORITY_OVERLOADED", "too many event streams are open");
  const onStop = (): void => feed.end("closed");
  let release: () => void = () => undefined;
  const feed = new EventFeed({
    authority: services.authority,
    positions,
    matches,
    backlogMax: config.eventBacklogMax,
    keepAliveMs: config.keepAliveMs,
    onEnd: (how) => {
      openFeeds.delete(feed);
      release();
      meters.streams(openFeeds.size);
      stopping.removeEventListener("abort", onStop);
      if (how === "slow") {
        services.log.info({ backlogMax: config.eventBacklogMax }, "cut off a slow reader of events");
        context.env?.incoming?.socket.destroy();
      }
    },
  });
  openFeeds.add(feed);
  meters.streams(openFeeds.size);
  stopping.addEventListener("abort", onStop);
  const body = feed.open();
  // A stream lasts no longer than the grant that it was opened under.
  if (bearer !== undefined) release = services.authority.access().onFallen(bearer, onStop);
  if (stopping.aborted) onStop();
  return { ...answer, body };
}
