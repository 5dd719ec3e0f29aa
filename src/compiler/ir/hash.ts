// Identifies a kernel independently of how its source is spelled: shortened names, minification and coverage counters do not change its
// canonical form, so equivalent sources share one compiled image (builder.ts).
import { createHash } from 'node:crypto';
import type { ArrayRef, KernelIr, Variable } from './ir.js';

type Node = Readonly<Record<string, unknown>>;

/** The kernel with numbered locals and without positions. Names that are keys of user objects stay. */
export function canonical(ir: KernelIr): KernelIr {
  // A variable, array or helper is one object at every use, and stays one.
  const seen = new Map<object, object>();
  let locals = 0;
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit);
    if (value === null || typeof value !== 'object') return value;
    const known = seen.get(value);
    if (known) return known;
    const made: Record<string, unknown> = {};
    seen.set(value, made);
    if (isLocal(value)) made['name'] = `v${++locals}`;
    for (const key of Object.keys(value).toSorted()) {
      if (key === 'at') made[key] = 0;
      else if (!(key in made)) made[key] = visit((value as Node)[key]);
    }
    return made;
  };
  return visit(ir) as KernelIr;
}

/** Whether the name comes from the source rather than from a key of `params`: a minifier may have renamed it. */
function isLocal(value: object): boolean {
  const { isConst, space }: Partial<Variable & ArrayRef> = value;
  return isConst !== undefined || (space !== undefined && space !== 'parameter');
}

/** The hash of the canonical form: sha256, in hexadecimal. It ignores the wording of assertions, which tools reformat. */
export function irHash(ir: KernelIr): string {
  const text = JSON.stringify(canonical(ir), (key, value: unknown) => {
    if (key === 'text') return undefined;
    if (typeof value === 'bigint') return `bigint ${value}`;
    // JSON has no infinities, NaN or negative zero.
    return typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0))
      ? `number ${Object.is(value, -0) ? '-0' : value}`
      : value;
  });
  return digestOf(text);
}

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
