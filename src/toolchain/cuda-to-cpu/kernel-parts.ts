// A kernel as it is cut at its barriers: parts between two of them, and the loops and branches around.
import type { Declarator, Statement } from '../cuda-parser/statements.js';

/** What a local variable is to the parts of the kernel. */
export type Role =
  /** Used in one part only: stays where it is. */
  | 'local'
  /** The same for all threads, and never assigned: declared once, outside the loops over threads. */
  | 'uniform'
  /** Made of indices and parameters, and never assigned: declared anew in each part, or indexing by it could not be vectorised. */
  | 'recomputed'
  /** Outlives the part that declares it: an array with an element for each thread. */
  | 'crossing';

export interface Variable extends Declarator {
  readonly id: number;
  readonly type: string;
  /** Of the kernel, whose threads change it: each has its own. */
  readonly isParameter: boolean;
  /** Of a type that is none of the language's and CUDA's, so that it may have constructors and an assignment. */
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
/** A statement around barriers. */
export interface Around {
  readonly kind: 'around';
  /** `for (...)`, `if (...)`, or nothing for a block. */
  readonly head: string;
  readonly bodies: readonly List[];
}
export interface List {
  readonly outer: List | undefined;
  readonly shared: string[];
  readonly variables: Map<string, Variable>;
  readonly items: (Part | Around)[];
}
