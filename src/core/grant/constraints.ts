import { constraintNames, type Attributes, type GrantConstraints } from "./grant.ts";
import { isWithinNetwork } from "./network.ts";

/** What the authority knows about a request (contract 4.1). A fact that is missing satisfies no constraint. */
export interface RequestFacts {
  readonly environment?: string;
  readonly workerClass?: string;
  /** The address that the request comes from. */
  readonly network?: string;
  readonly workloadId?: string;
  readonly connectionEnabled?: boolean;
  readonly schemaVersion?: number;
  readonly subjectAttributes?: Attributes;
  readonly resourceAttributes?: Attributes;
  readonly contextAttributes?: Attributes;
}

type Name = (typeof constraintNames)[number];
type Wanted<Constraint extends Name> = Exclude<GrantConstraints[Constraint], undefined>;

interface Rule {
  /** Whether a request satisfies it; what is not asked for holds. */
  holds(constraints: GrantConstraints, facts: RequestFacts): boolean;
  /** Whether whatever satisfies `inner` satisfies `outer` too. */
  isTighter(inner: GrantConstraints, outer: GrantConstraints): boolean;
}

const rule = <Constraint extends Name>(
  name: Constraint,
  how: {
    readonly holds: (wanted: Wanted<Constraint>, facts: RequestFacts) => boolean;
    readonly isTighter: (inner: Wanted<Constraint>, outer: Wanted<Constraint>) => boolean;
  },
): Rule => {
  const wantedBy = (constraints: GrantConstraints): Wanted<Constraint> | undefined =>
    constraints[name] as Wanted<Constraint> | undefined;
  return {
    holds: (constraints, facts) => {
      const wanted = wantedBy(constraints);
      return wanted === undefined || how.holds(wanted, facts);
    },
    isTighter: (inner, outer) => {
      const [mine, theirs] = [wantedBy(inner), wantedBy(outer)];
      return theirs === undefined || (mine !== undefined && how.isTighter(mine, theirs));
    },
  };
};

const has = (attributes: Attributes | undefined, wanted: Attributes): boolean =>
  Object.entries(wanted).every(
    ([name, value]) => attributes !== undefined && Object.hasOwn(attributes, name) && attributes[name] === value,
  );

const attributeRule = (name: "subjectAttributes" | "resourceAttributes" | "contextAttributes"): Rule =>
  rule(name, { holds: (wanted, facts) => has(facts[name], wanted), isTighter: has });

const equalRule = (name: "workerClass" | "workloadId" | "connectionEnabled"): Rule =>
  rule(name, {
    holds: (wanted, facts) => facts[name] === wanted,
    isTighter: (inner, outer) => inner === outer,
  });

const rules: { readonly [Constraint in Name]: Rule } = {
  environments: rule("environments", {
    holds: (wanted, { environment }) => environment !== undefined && wanted.includes(environment),
    isTighter: (inner, outer) => inner.every((environment) => outer.includes(environment)),
  }),
  workerClass: equalRule("workerClass"),
  network: rule("network", {
    holds: (wanted, { network }) => network !== undefined && isWithinNetwork(network, wanted),
    isTighter: isWithinNetwork,
  }),
  workloadId: equalRule("workloadId"),
  connectionEnabled: equalRule("connectionEnabled"),
  minimumSchemaVersion: rule("minimumSchemaVersion", {
    holds: (wanted, { schemaVersion }) => schemaVersion !== undefined && schemaVersion >= wanted,
    isTighter: (inner, outer) => inner >= outer,
  }),
  subjectAttributes: attributeRule("subjectAttributes"),
  resourceAttributes: attributeRule("resourceAttributes"),
  contextAttributes: attributeRule("contextAttributes"),
};

/** The first constraint that a request does not satisfy, but for those that are asked for later. */
export const findBrokenConstraint = (
  constraints: GrantConstraints,
  facts: RequestFacts,
  later: readonly Name[] = [],
): Name | undefined => constraintNames.find((name) => !later.includes(name) && !rules[name].holds(constraints, facts));

/** The first constraint of the outer ones that the inner ones do not imply. */
export const findLooserConstraint = (inner: GrantConstraints, outer: GrantConstraints): Name | undefined =>
  constraintNames.find((name) => !rules[name].isTighter(inner, outer));
