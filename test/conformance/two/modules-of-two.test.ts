// Chapter 4: a module on two devices.
import { describe, expect } from 'vitest';
import { cudaKernel, i32, output } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { counters, one } from '../../support/modules.js';
import { chapterDevices, rulesOf } from '../../support/rule.js';

defineChapter((target) => {
  describe('4 kernels: modules on two devices', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    rule('S470', 'each device has separate variables, for modules and for other kernels', async () => {
      const { device, other } = chapter;
      const { module, add } = counters();
      const plain = cudaKernel(
        'plain',
        { out: output(i32) },
        '__device__ int kept = 1; extern "C" __global__ void plain(int* out) { kept += 1; out[0] = kept; }',
      );
      for (const [each, by, sum] of [
        [device, 1, 101],
        [other, 10, 110],
        [device, 1, 102],
        [other, 10, 120],
      ] as const) {
        using out = each.zeros(1, 'i32');
        each.stream.launch(add, one, { out, by });
        expect((await out.read())[0]).toBe(sum);
        expect((await module.global(each, 'count', i32, 1).read())[0]).toBe(sum);
        each.stream.launch(plain, one, { out });
        expect((await out.read())[0]).toBe(by === 1 ? sum - 99 : (sum - 100) / 10 + 1);
      }
    });

    rule('S471', 'a variable is copied to another device, and from it', async () => {
      const { device, other } = chapter;
      const { module, step } = counters();
      const [here, there] = [module.global(device, 'steps', i32, 3), module.global(other, 'steps', i32, 3)];
      device.stream.copy(here, new Int32Array([4, 5, 6]));
      other.stream.copy(there, here);
      using out = other.zeros(1, 'i32');
      other.stream.launch(step, one, { out });
      expect((await out.read())[0]).toBe(115);
      device.stream.copy(here, there);
      expect([...(await here.read())]).toEqual([4, 15, 6]);
    });
  });
});
