import type { Authority } from "../src/authority/authority.ts";
import { fillAdmission } from "../src/http/members.ts";
import { closedLoop, type Figures } from "./figures.ts";
import type { Load, Phases } from "./raw-load.ts";
import { admissionOf, claimNextOf, completionOf, keyOf, requester, scope, type HeldClaim } from "./sample-work.ts";

/** What the authority itself costs, called in its own process: no transport, no copy of what is sent. */

const admit = async (authority: Authority, key: string): Promise<void> => {
  await authority.admit(fillAdmission(admissionOf(key), { subject: requester }, undefined));
};

const claimNext = async (
  authority: Authority,
  workerId: string,
  requestId?: string,
): Promise<HeldClaim | undefined> => {
  const request = claimNextOf(workerId, { waitMs: 1000, ...(requestId === undefined ? {} : { requestId }) });
  return (await authority.claimNext({ ...request, ...scope }))[0];
};

/** The same three phases as over the wire. */
export async function directPhases(
  authority: Authority,
  load: Load & { readonly requested: boolean },
): Promise<Phases> {
  const { run, inFlight, requested } = load;
  const admitted = await closedLoop(load, (_, index) => admit(authority, keyOf(run, index)));
  const claims: HeldClaim[] = [];
  const rest = { inFlight, end: { operations: admitted.operations } };
  const claim = await closedLoop(rest, async (lane, index) => {
    const taken = await claimNext(authority, `worker-${lane}`, requested ? `${run}-${index}` : undefined);
    if (taken === undefined) return false;
    claims.push(taken);
    return true;
  });
  const complete = await closedLoop({ inFlight, end: { operations: claims.length } }, async (_, index) => {
    const taken = claims[index];
    if (taken !== undefined) await authority.complete(completionOf(taken));
  });
  return { admit: admitted, claim, complete };
}

export const directLives = (authority: Authority, load: Load): Promise<Figures> =>
  closedLoop(load, async (lane, index) => {
    await admit(authority, keyOf(load.run, index));
    const claim = await claimNext(authority, `worker-${lane}`);
    if (claim === undefined) throw new Error("no work came");
    await authority.complete(completionOf(claim));
  });
