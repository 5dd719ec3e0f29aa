// The structure of a kernel after loop fission: the parts between barriers, and the loops and branches around them.
import type { Declarator, Statement } from '../read/statements.js';

/** How the parts of the kernel use a local variable. */
export type Role =
  /** Used in one part only: its declaration stays there. */
  | 'local'
  /** The same for all threads and never reassigned: declared once, outside the loops over threads. */
  | 'uniform'
  /** Computed from indices and parameters, and never reassigned: repeated in each part, since a stored index does not vectorise. */
  | 'recomputed'
  /** Used after the part that declares it: an array with one element per thread. */
  | 'crossing';

export interface Variable extends Declarator {
  readonly id: number;
  readonly type: string;
  /** A parameter of the kernel that threads assign: each thread has a copy. */
  readonly isParameter: boolean;
  /** Whether its type may be a class with constructors and an assignment operator. */
  readonly isObject: boolean;
  role: Role;
  readonly declaredIn: Part;
  readonly usedIn: Set<Part>;
}
/** Statements between two barriers. */
export interface Part {
  readonly kind: 'part';
  readonly statements: Statement[];
}
/** A statement that contains barriers. */
export interface Around {
  readonly kind: 'around';
  /** `for (...)`, `if (...)`, or empty for a block. */
  readonly head: string;
  readonly bodies: readonly List[];
}
export interface List {
  readonly outer: List | undefined;
  readonly shared: string[];
  readonly variables: Map<string, Variable>;
  readonly items: (Part | Around)[];
}
