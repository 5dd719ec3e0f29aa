// Chapter 4: CUDA's device libraries in CUDA C++ sources. The sources are in test/cuda-texts.
import { describe, expect } from 'vitest';
import { cudaKernel, cudaModule, i32, inout, input, output, u32, u64, u8 } from 'millrace';
import { ADDRESS_SPACE_CASES } from '../../cuda-texts/address-space-cases.js';
import { CUB_CASES, CUB_TEMPLATE_CASES } from '../../cuda-texts/cub-cases.js';
import { CUDA_LIBRARY_CASES, GROUP_CASES } from '../../cuda-texts/cuda-library-cases.js';
import { RANDOM_CASES } from '../../cuda-texts/random-cases.js';
import { textOf } from '../../cuda-texts/text-case.js';
import { checkText } from '../../cuda-texts/text-check.js';
import { WIDE_TILE_CASES } from '../../cuda-texts/wide-tile-cases.js';
import { defineChapter } from '../../support/chapter.js';
import { xorwow } from '../../support/oracle/curand.js';
import { chapterDevice, type Rule, rulesOf } from '../../support/rule.js';
import { pickedTexts } from '../../support/target.js';

/** What XORWOW's first words of a seed's sequences are as uniform numbers, by cuRAND's manual. */
const FROM_THE_MANUAL = [0.1455, 0.8202, 0.5504, 0.2948, 0.9147, 0.869, 0.3219, 0.7829, 0.0113, 0.2855];

function hitsOf(id: number, steps: number): number {
  const next = xorwow(7n, BigInt(id), 0n);
  const unit = (): number => Math.fround(Math.fround(next()) * 2 ** -32 + 2 ** -33);
  let hits = 0;
  for (let k = 0; k < steps; k++) {
    const [x, y] = [unit(), unit()];
    if (x * x + y * y <= 1) hits++;
  }
  return hits;
}

defineChapter((target) => {
  describe("4 kernels: CUDA's device libraries", () => {
    const ofTarget = rulesOf(target);
    // The compiler of the fake driver has these libraries from the headers of the CPU device, which tests them itself.
    const absent = target.name === 'fake-cuda' && "the fake driver's compiler has no headers of a CUDA toolkit";
    const rule: Rule = (number, title, body, options) => ofTarget(number, title, body, { unless: absent, ...options });
    const chapter = chapterDevice(target);

    for (const [at, one] of pickedTexts(target, RANDOM_CASES).entries())
      rule('S483', `random numbers: ${one.file} (${at})`, () => checkText(chapter.device, one));

    for (const one of pickedTexts(target, CUB_CASES))
      rule('S484', `CUB: ${one.kernel} of ${one.file}`, () => checkText(chapter.device, one));
    for (const one of pickedTexts(target, CUB_TEMPLATE_CASES))
      rule('S445', `templates with CUB: ${one.kernel}`, () => checkText(chapter.device, one));

    for (const one of pickedTexts(target, [...GROUP_CASES, ...WIDE_TILE_CASES, ...CUDA_LIBRARY_CASES]))
      rule('S485', `C++ library and groups: ${one.kernel} of ${one.file}`, () => checkText(chapter.device, one));

    for (const one of ADDRESS_SPACE_CASES) rule('S457', `address spaces: ${one.kernel}`, () => checkText(chapter.device, one));

    rule('S483', "XORWOW's first numbers are those of cuRAND's manual", () => {
      const found = FROM_THE_MANUAL.map((_unused, id) => Math.round((xorwow(1234n, BigInt(id), 0n)() / 2 ** 32) * 1e4) / 1e4);
      expect(found).toEqual(FROM_THE_MANUAL);
    });

    rule('S483', 'states stay in memory from launch to launch', async () => {
      const { device } = chapter;
      const module = cudaModule(textOf('monte-carlo-pi'));
      using walkers = device.zeros(56 * 64, 'u8');
      using hits = device.zeros(64, 'u32');
      const grid = { grid: 2, block: 32 };
      device.stream.launch(module.kernel('setup', { walkers: inout(u8), seed: u64 }), grid, { walkers, seed: 7n });
      const walk = module.kernel('walk', { walkers: inout(u8), hits: output(u32), steps: i32 });
      for (const steps of [10, 0, 30]) device.stream.launch(walk, grid, { walkers, hits, steps });
      expect([...(await hits.read())]).toEqual(Array.from({ length: 64 }, (_unused, id) => hitsOf(id, 40)));
    });

    rule('S486', 'memory of the heap outlives the launch that takes it, and kernels free it', async () => {
      const { device } = chapter;
      const module = cudaModule(textOf('device-heap'));
      using x = device.from(Int32Array.from({ length: 64 }, (_unused, i) => i));
      using sums = device.zeros(64, 'i32');
      const grid = { grid: 2, block: 32 };
      for (let round = 0; round < 3; round++) {
        device.stream.launch(module.kernel('make_lists', { x: input(i32), per_thread: i32 }), grid, { x, per_thread: 5 });
        device.stream.launch(module.kernel('free_lists', { sums: output(i32) }), grid, { sums });
      }
      const sumOf = (i: number): number => [4, 3, 2, 1, 0].reduce((sum, k) => sum * 3 + i + k, 0);
      expect([...(await sums.read())]).toEqual(Array.from({ length: 64 }, (_unused, i) => sumOf(i)));
    });

    rule('S486', 'new constructs, delete destroys, also arrays and in kernels whose threads wait', async () => {
      const { device } = chapter;
      const kernel = cudaKernel('objects', { y: output(i32), counts: output(i32) }, textOf('device-heap'));
      using y = device.zeros(32, 'i32');
      using counts = device.zeros(1, 'i32');
      device.stream.launch(kernel, { grid: 1, block: 32 }, { y, counts });
      expect([...(await y.read())]).toEqual(Array.from({ length: 32 }, (_unused, i) => 6 + i));
      expect(await counts.item(0)).toBe(32 * 8);
    });

    rule('S486', 'a heap without room gives NULL', async () => {
      const { device } = chapter;
      using y = device.zeros(3, 'i32');
      device.stream.launch(cudaKernel('exhaust', { y: output(i32) }, textOf('device-heap')), { grid: 1, block: 1 }, { y });
      expect([...(await y.read())]).toEqual([1, 1, 1]);
    });

    rule('S483', 'Poisson numbers have their mean', async () => {
      const { device } = chapter;
      const kernel = cudaKernel('random_poisson', { few: output(u32), sums: inout(u32), seed: u64 }, textOf('random-poisson'));
      using few = device.zeros(256, 'u32');
      using sums = device.zeros(2, 'u32');
      device.stream.launch(kernel, { grid: 4, block: 64 }, { few, sums, seed: 9n });
      const draws = 256 * 64;
      const [middle, large] = [...(await sums.read())].map((sum) => sum / draws);
      // Five standard deviations of the mean.
      expect(Math.abs(middle! - 500)).toBeLessThan(5 * Math.sqrt(500 / draws));
      expect(Math.abs(large! - 10000)).toBeLessThan(5 * Math.sqrt(10000 / draws));
      expect([...(await few.read())]).toEqual(Array.from({ length: 256 }, (_unused, id) => poissonOf(id)));
    });
  });
});

/** Knuth's method with f32, as cuRAND has it for small lambdas. */
function poissonOf(id: number): number {
  const next = xorwow(9n, BigInt(id), 0n);
  let k = 0;
  for (let product = Math.fround(Math.exp(3.5)); ; k++) {
    product = Math.fround(product * Math.fround(Math.fround(next()) * 2 ** -32 + 2 ** -33));
    if (product <= 1) return k;
  }
}
