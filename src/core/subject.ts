/** Kinds of subjects (contract 1.1). */
export const subjectKinds = ["human", "service", "agent", "worker", "workload", "connection"] as const;
export type SubjectKind = (typeof subjectKinds)[number];

/** Who does something. Two subjects are equal when both parts are. */
export interface Subject {
  readonly kind: SubjectKind;
  readonly id: string;
}

/** Whether two subjects are the same one (contract 1.1). */
export const sameSubject = (left: Subject, right: Subject): boolean => left.kind === right.kind && left.id === right.id;
