// Chapter 4: files of CUDA C++ as they are published, against plain JavaScript. The files are in test/cuda-texts.
import { describe, expect } from 'vitest';
import { cudaKernel, type Device, type DeviceArray } from 'millrace';
import { HEADER_CASES } from '../cuda-texts/header-cases.js';
import { type TextCase, textOf, type Values } from '../cuda-texts/text-case.js';
import { chapterDevice, rulesOf } from '../support/rule.js';
import type { Target } from '../support/target.js';

async function check(device: Device, one: TextCase): Promise<void> {
  const { file, kernel, params, launch, given, results, options = [] } = one;
  const made = cudaKernel(kernel, params, textOf(file), { options });
  const arrays = new Map<string, DeviceArray>();
  const args: Record<string, number | DeviceArray> = {};
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === 'number') args[name] = value;
    else arrays.set(name, (args[name] = device.from(value as Float32Array)));
  }
  device.stream.launch(made, launch, args as never);
  for (const [name, expected] of Object.entries(results)) {
    const found = (await arrays.get(name)!.read()) as unknown as Values;
    expectAlike(found, expected, `${file}: ${name}`);
  }
  for (const array of arrays.values()) array[Symbol.dispose]();
}

function expectAlike(found: Values, expected: Values, what: string): void {
  expect(found.length, what).toBe(expected.length);
  if (!(found instanceof Float32Array || found instanceof Float64Array)) return expect(found, what).toEqual(expected);
  for (const [i, value] of found.entries()) {
    const right = Number(expected[i]);
    const isAlike = Object.is(value, right) || Math.abs(value - right) <= 4e-6 * Math.max(1, Math.abs(right));
    expect(isAlike, `${what}[${i}]: ${value} for ${right}`).toBe(true);
  }
}

export function cudaCode(target: Target): void {
  describe('4 kernels: files of CUDA C++', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const one of HEADER_CASES) rule('S443', `headers: ${one.file}`, () => check(chapter.device, one));
  });
}
