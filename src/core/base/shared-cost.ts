// How a pipeline says that code serves several requests at once. Set while `usage` of millrace/timeline measures; without it a request pays
// one load.
import type { AsyncResource } from 'node:async_hooks';

export const sharedCost: {
  /** Calls the function in the first context, so that what it does counts for all contexts in equal parts. */
  run: (<T>(contexts: readonly AsyncResource[], fn: () => T) => T) | undefined;
} = { run: undefined };
