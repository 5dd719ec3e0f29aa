// Runs one text of this folder on a device.
import { expect } from 'vitest';
import { type CudaParams, cudaKernel, type Device, type DeviceArray, type Field } from 'millrace';
import { type Given, type TextCase, textOf, type Values } from './text-case.js';

/** For floats whose operations a compiler may fuse. */
const TOLERANCE = 4e-6;

/** Launches the kernel of a case and compares its arrays, each in the order of `order`. */
export async function checkText(device: Device, one: TextCase, order: (values: Values) => Values = (values) => values): Promise<void> {
  const { file, kernel, params, launch, given, results, options = [], tolerance = TOLERANCE } = one;
  const made = cudaKernel(kernel, params, textOf(file), { options });
  const arrays = new Map<string, DeviceArray>();
  const args = Object.fromEntries(Object.entries(given).map(([at, value]) => [at, argument(device, params[at]!, value, at, arrays)]));
  device.stream.launch(made, launch, args as never);
  for (const [name, expected] of Object.entries(results)) {
    const found = (await arrays.get(name)!.read()) as unknown as Values;
    expectAlike(order(found), order(expected), `${file}: ${name}`, tolerance);
  }
  for (const array of arrays.values()) array[Symbol.dispose]();
}

/** What a launch takes for a parameter or a field. The arrays that it makes are added to `arrays` by their path. */
function argument(device: Device, of: CudaParams[string] | Field, value: Given, at: string, arrays: Map<string, DeviceArray>): unknown {
  if (of.kind === 'optional') return value === null ? null : argument(device, of.array, value, at, arrays);
  if (of.kind === 'array') {
    const made = device.from(value as Float32Array, { dtype: of.dtype as 'f32' });
    arrays.set(at, made);
    return made;
  }
  const inside = (field: Field, name: string): unknown =>
    argument(device, field, (value as Record<string, Given>)[name]!, `${at}.${name}`, arrays);
  if (of.kind === 'struct') return Object.fromEntries(Object.entries(of.fields).map(([name, field]) => [name, inside(field, name)]));
  if (of.kind === 'fixed') return Array.from({ length: of.length }, (_unused, i) => inside(of.element, String(i)));
  return value;
}

/** Compares arrays; floats may differ by the tolerance. */
export function expectAlike(found: Values, expected: Values, what: string, tolerance: number = TOLERANCE): void {
  expect(found.length, what).toBe(expected.length);
  if (!(found instanceof Float32Array || found instanceof Float64Array)) return expect(found, what).toEqual(expected);
  for (const [i, value] of found.entries()) {
    const right = Number(expected[i]);
    const isAlike = Object.is(value, right) || Math.abs(value - right) <= tolerance * Math.max(1, Math.abs(right));
    expect(isAlike, `${what}[${i}]: ${value} for ${right}`).toBe(true);
  }
}
