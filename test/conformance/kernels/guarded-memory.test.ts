// Chapter 6: accesses outside of arrays on a device with guarded memory.
import { describe, expect } from 'vitest';
import { arrayOf, bytes, cudaModule, f32, i32, inout, input, kernel, LaunchError, openDevice, output, struct, u8 } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

/** All are compiled at once. */
const module = cudaModule(`extern "C" __global__ void shifted(const float* x, float* y, int shift) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i + shift];
}
struct Header { char name[12]; };
struct Lines { int n; int* lines[2]; };
struct Target { int count; int* values; Lines more[2]; };
extern "C" __global__ void stamped(Header header, Target to, int at) {
  if (at >= 0) to.values[at] = to.count + header.name[0];
  else to.more[1].lines[0][-at] = to.more[1].n;
}
extern "C" __global__ void put(unsigned char* y, int at) { y[at] = 7; }
extern "C" __global__ void beyondShared(unsigned char* y, int at) {
  extern __shared__ unsigned char s[];
  *(volatile unsigned char*)(s + at) = 1;
  y[0] = s[0];
}
extern "C" __global__ void wide(float4* x) { x[threadIdx.x].y += 1.0f; }
extern "C" __global__ void beyond_own(unsigned char* y, int at, int space) {
  __shared__ unsigned char shared[100];
  volatile unsigned char own[100];
  if (threadIdx.x == 0) (space == 0 ? shared : own)[at] = 7;
  __syncthreads();
  if (threadIdx.x == 0) y[at] = space == 0 ? shared[at] : own[at];
}`);
const shifted = module.kernel('shifted', { x: input(f32), y: output(f32), shift: i32 });
const stamped = module.kernel('stamped', {
  header: bytes(12),
  to: struct({ count: i32, values: inout(i32), more: arrayOf(struct({ n: i32, lines: arrayOf(inout(i32), 2) }), 2) }),
  at: i32,
});
const put = module.kernel('put', { y: output(u8), at: i32 });
const beyondShared = module.kernel('beyondShared', { y: output(u8), at: i32 });
const wide = module.kernel('wide', { x: inout(f32) });
const beyondOwn = module.kernel('beyond_own', { y: output(u8), at: i32, space: i32 });

const unchecked = kernel(
  'unchecked',
  { picture: input(f32, 2), sums: output(f32), by: i32 },
  ({ picture, sums, by }, { i }) => {
    sums[i] = picture[0]![i + by]!;
  },
  { bounds: 'unchecked' },
);

/** The message of a launch that accessed this byte. */
const accessed = (name: string, byte: number, array: string, byteLength: number, block = '(0, 0, 0)') =>
  new RegExp(
    `kernel ${name} .* accessed byte ${byte} of array ${array}, which has ${byteLength} bytes, in block \\${block.slice(0, -1)}\\)`,
    'i',
  );

defineChapter((target) => {
  const rule = rulesOf(target);
  const isOnCpu = target.spec.startsWith('cpu');

  describe.runIf(!isOnCpu)('6 failure: guarded memory of a GPU', () => {
    rule('S622', 'a GPU refuses to guard its memory, and names the tool that does', async () => {
      const error = await rejectionOf(openDevice(target.spec, { guard: true }));
      expect(error).toMatchObject({ name: 'UnsupportedError', capability: 'guard' });
      expect(error.message).toContain('compute-sanitizer');
    });
  });

  describe.runIf(isOnCpu)('6 failure: accesses outside of arrays without guards', () => {
    const chapter = chapterDevice(target, { guard: false });

    rule('S625', 'an index that leaves the arrays reaches no memory of the host: its launch fails, and the device goes on', async () => {
      const { device } = chapter;
      using y = device.zeros(100, 'u8');
      for (const at of [-(2 ** 31), 2 ** 31 - 1]) {
        const error = await rejectionOf(device.stream.launch(put, { grid: 1, block: 1 }, { y, at }).done);
        expect(error).toBeInstanceOf(LaunchError);
        expect(error.message).toMatch(accessed('put', at, 'y', 100));
      }
      const launch = device.stream.launch(beyondShared, { grid: 1, block: 1, sharedBytes: 64 }, { y, at: -(2 ** 29) });
      expect((await rejectionOf(launch.done)).message).toContain('accessed memory before or behind its 64 bytes of dynamic shared memory');
      await device.stream.launch(put, { grid: 1, block: 1 }, { y, at: 99 }).done;
      expect((await y.read())[99]).toBe(7);
    });
  });

  describe.runIf(isOnCpu)('6 failure: accesses outside of shared and local arrays', () => {
    const chapter = chapterDevice(target, { guard: false });

    rule(
      'S626',
      'an index outside of shared or local arrays reaches no memory of the host: its launch fails, and the device goes on',
      async () => {
        const { device } = chapter;
        using y = device.zeros(100, 'u8');
        for (const space of [0, 1]) {
          for (const at of [-(2 ** 28), 2 ** 28]) {
            const error = await rejectionOf(device.stream.launch(beyondOwn, { grid: 2, block: 4 }, { y, at, space }).done);
            expect(error).toBeInstanceOf(LaunchError);
            expect(error.message).toContain('accessed memory before or behind its __shared__ or local variables in block (');
          }
          await device.stream.launch(beyondOwn, { grid: 2, block: 4 }, { y, at: 99, space }).done;
          expect((await y.read())[99]).toBe(7);
          device.stream.fill(y, 0);
        }
      },
    );
  });

  describe.runIf(isOnCpu)('6 failure: guarded memory', () => {
    const chapter = chapterDevice(target, { guard: true });

    rule('S622', 'an access behind an array fails its launch, which names array, byte and block, and the device goes on', async () => {
      const { device } = chapter;
      using x = device.full(1000, 3, 'f32');
      using y = device.zeros(1024, 'f32');
      using beside = device.full(4, 5, 'f32');
      const error = await rejectionOf(device.stream.launch(shifted, { grid: 8, block: 128 }, { x, y, shift: 0 }).done);
      expect(error).toBeInstanceOf(LaunchError);
      expect(error.message).toMatch(accessed('shifted', 4000, 'x', 4000, '(7, 0, 0)'));
      expect(await beside.read()).toEqual(new Float32Array(4).fill(5));
      expect((await x.read())[999]).toBe(3);
      // It was to be written.
      await expect(y.read()).rejects.toMatchObject({ name: 'UpstreamError' });
      await device.stream.launch(shifted, { grid: 1, block: 1000 }, { x, y: device.zeros(1000, 'f32'), shift: 0 }).done;
    });

    rule('S622', 'an access before an array is named, from the page before it on', async () => {
      const { device } = chapter;
      using x = device.full(1024, 3, 'f32');
      using y = device.zeros(1024, 'f32');
      const error = await rejectionOf(device.stream.launch(shifted, { grid: 4, block: 256 }, { x, y, shift: -1 }).done);
      expect(error.message).toMatch(accessed('shifted', -4, 'x', 4096));
    });

    rule('S622', 'an array in a struct is named by its field', async () => {
      const { device } = chapter;
      using values = device.zeros(4, 'i32');
      using line = device.zeros(4, 'i32');
      const header = new Uint8Array(12).fill(1);
      const more = [
        { n: 1, lines: [values, values] },
        { n: 2, lines: [line, values] },
      ];
      const launch = (at: number) =>
        device.stream.launch(stamped, { grid: 1, block: 1 }, { header, to: { count: 6, values, more }, at }).done;
      await launch(3);
      expect([...(await values.read())]).toEqual([0, 0, 0, 7]);
      expect((await rejectionOf(launch(4))).message).toMatch(accessed('stamped', 16, 'to.values', 16));
      for (const array of [values, line]) device.stream.fill(array, 0);
      expect((await rejectionOf(launch(-4))).message).toMatch(accessed('stamped', 16, 'to.more\\[1\\].lines\\[0\\]', 16));
    });

    rule('S622', 'a write beside an array of any size is found, before and behind it, also in a graph', async () => {
      const { device } = chapter;
      // 62 bytes end 2 bytes before the guard.
      for (const byteLength of [4, 62, 4000, 4096, 70_000]) {
        for (const at of [-1, -7, -64, byteLength, byteLength + 1]) {
          using y = device.zeros(byteLength, 'u8');
          const error = await rejectionOf(device.stream.launch(put, { grid: 1, block: 1 }, { y, at }).done);
          expect(error).toBeInstanceOf(LaunchError);
          expect(error.message).toMatch(
            new RegExp(`kernel put .* (accessed|wrote) byte ${at} of array y, which has ${byteLength} bytes`, 'i'),
          );
        }
      }
      using y = device.zeros(100, 'u8');
      const graph = device.stream.capture((s) => void s.launch(put, { grid: 1, block: 1 }, { y, at: -3 }));
      expect((await rejectionOf(device.stream.launch(graph).done)).message).toContain('wrote byte -3 of array y, which has 100 bytes');
      await device.stream.launch(put, { grid: 1, block: 1 }, { y, at: 99 }).done;
      expect((await y.read())[99]).toBe(7);
    });

    rule('S622', 'kernels may read arrays as vectors of 16 bytes', async () => {
      const { device } = chapter;
      using x = device.zeros(7, 'f32');
      await device.stream.launch(wide, { grid: 1, block: 1 }, { x }).done;
      expect([...(await x.read())]).toEqual([0, 1, 0, 0, 0, 0, 0]);
    });

    rule('S622', 'an unchecked TypeScript kernel names its array, too', async () => {
      const { device } = chapter;
      using picture = device.zeros([4, 64], 'f32');
      using sums = device.zeros(16, 'f32');
      const error = await rejectionOf(device.stream.launch(unchecked, 16, { picture, sums, by: 250 }).done);
      expect(error.message).toMatch(/accessed byte 10(2[4-9]|[3-9]\d) of array picture, which has 1024 bytes/);
    });

    rule('S622', 'an empty array, an odd size and a large array are usable as ever', async () => {
      const { device } = chapter;
      for (const length of [0, 1, 4095, 5 << 20]) {
        using x = device.full(length, 9, 'u8');
        const read = await x.read();
        expect(read.length).toBe(length);
        expect(read.every((value) => value === 9)).toBe(true);
      }
    });

    rule('S622', 'a device that is open is not opened again in another way, and the option is true or false', async () => {
      await expect(openDevice(target.spec, { guard: false })).rejects.toMatchObject({ name: 'StateError' });
      await expect(openDevice(target.spec, { guard: 1 as never })).rejects.toMatchObject({ name: 'ArgumentError', argument: 'guard' });
    });
  });
});
