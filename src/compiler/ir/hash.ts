// What a kernel is, apart from how its text was written: which tool shortened its names, put it on one line or counted
// its branches. Two texts of one kernel have one canonical form, and so one built image (builder.ts).
import { createHash } from 'node:crypto';
import type { ArrayRef, KernelIr, Variable } from './ir.js';

type Node = Readonly<Record<string, unknown>>;

/** The kernel with its locals named by number and without positions. What goes by a key of the user's keeps its name. */
export function canonical(ir: KernelIr): KernelIr {
  // A variable, an array or a helper is one object wherever it is used, and stays one.
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

/** Named by the text, and not by a key of `params`: a tool may have renamed it. */
function isLocal(value: object): boolean {
  const { isConst, space }: Partial<Variable & ArrayRef> = value;
  return isConst !== undefined || (space !== undefined && space !== 'parameter');
}

/** One for all texts of a kernel: sha256, in hexadecimal. Words of an assertion count for nothing: tools space them as they like. */
export function irHash(ir: KernelIr): string {
  const text = JSON.stringify(canonical(ir), (key, value: unknown) => {
    if (key === 'text') return undefined;
    if (typeof value === 'bigint') return `bigint ${value}`;
    // JSON knows neither the infinities and NaN nor the sign of a zero.
    return typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0))
      ? `number ${Object.is(value, -0) ? '-0' : value}`
      : value;
  });
  return digestOf(text);
}

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
