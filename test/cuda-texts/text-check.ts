// Runs one text of this folder on a device.
import { expect } from 'vitest';
import { cudaKernel, type Device, type DeviceArray } from 'millrace';
import { type TextCase, textOf, type Values } from './text-case.js';

/** For floats whose operations a compiler may fuse. */
const TOLERANCE = 4e-6;

/** Launches the kernel of a case and compares its arrays, each in the order of `order`. */
export async function checkText(device: Device, one: TextCase, order: (values: Values) => Values = (values) => values): Promise<void> {
  const { file, kernel, params, launch, given, results, options = [], tolerance = TOLERANCE } = one;
  const made = cudaKernel(kernel, params, textOf(file), { options });
  const arrays = new Map<string, DeviceArray>();
  const args: Record<string, number | DeviceArray> = {};
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === 'number') args[name] = value;
    else arrays.set(name, (args[name] = device.from(value as Float32Array, { dtype: params[name]!.dtype as 'f32' })));
  }
  device.stream.launch(made, launch, args as never);
  for (const [name, expected] of Object.entries(results)) {
    const found = (await arrays.get(name)!.read()) as unknown as Values;
    expectAlike(order(found), order(expected), `${file}: ${name}`, tolerance);
  }
  for (const array of arrays.values()) array[Symbol.dispose]();
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
