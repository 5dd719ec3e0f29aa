// `__managed__` variables become `__device__` variables, on every device: streams cannot order accesses of a host that reads memory while
// kernels run, so the host has copies only.
import { withoutComments } from './tokens.js';

/** Has as many characters as `__managed__`, so positions in the source stay. */
const INSTEAD = '__device__ ';

/** Outside of comments and strings. */
export function withoutManaged(source: string): string {
  if (!source.includes('__managed__')) return source;
  let changed = '';
  let from = 0;
  for (const { index } of withoutComments(source).matchAll(/\b__managed__\b/g)) {
    changed += source.slice(from, index) + INSTEAD;
    from = index + INSTEAD.length;
  }
  return changed + source.slice(from);
}
