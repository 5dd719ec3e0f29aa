// Chapter 3: the names of element types, in every call that takes one.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  array,
  arrayOf,
  bitsFromFloats,
  CompileError,
  cudaKernel,
  cudaModule,
  empty,
  f32,
  floatsFromBits,
  full,
  func,
  inout,
  input,
  kernel,
  ones,
  optional,
  output,
  overlap,
  pinned,
  struct,
  vec,
  zeros,
} from 'millrace';
import { lastValueFrom } from 'rxjs';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

defineChapter((target) => {
  describe('3 memory: names of element types', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const refusedBy = async (take: (name: never) => unknown, name: unknown): Promise<Error> =>
      rejectionOf((async () => take(name as never))());

    rule('S369', 'calls that take the name of an element type refuse the names of other libraries with the right spelling', async () => {
      const { device } = chapter;
      const { stream } = device;
      const module = cudaModule('__device__ float total; extern "C" __global__ void add(float* x) { total += *x; }');
      using shared = device.zeros(1);
      const takers: readonly ((dtype: never) => unknown)[] = [
        (dtype) => zeros(1, dtype),
        (dtype) => ones(1, dtype),
        (dtype) => empty(1, dtype),
        (dtype) => full(1, 1 as never, dtype),
        (dtype) => array([1], { dtype: dtype as 'i32' }),
        (dtype) => pinned(1, dtype),
        (dtype) => device.zeros(1, dtype),
        (dtype) => device.from([1], { dtype: dtype as 'i32' }),
        (dtype) => device.pinned(1, dtype),
        (dtype) => device.interprocess(1, dtype),
        (dtype) => device.openIpcArray(new Uint8Array(64), 1, dtype),
        (dtype) => device.adopt(shared.share(), dtype),
        (dtype) => device.createTexture({ shape: [1], dtype }),
        (dtype) => stream.empty(1, dtype),
        (dtype) => stream.full(1, 1 as never, dtype),
        (dtype) => module.global(device, 'total', dtype, 1),
        (dtype) => floatsFromBits(new Uint16Array(1), dtype),
        (dtype) => bitsFromFloats([1], dtype),
        (dtype) => lastValueFrom(overlap(device, [1], {}, async (_, lane) => lane.zeros(1, dtype).item())),
        (dtype) => lastValueFrom(overlap(device, [1], {}, async (_, lane) => lane.pinned(1, dtype).length)),
      ];
      for (const take of takers) {
        for (const [wrong, right] of [
          ['float32', "'f32'"],
          ['<i8', "'i64'"],
          [Uint8Array, "'u8'"],
        ] as const) {
          const error = await refusedBy(take, wrong);
          expect(error, String(take)).toBeInstanceOf(ArgumentError);
          expect(error.message, String(take)).toMatch(/^The dtype \(.*\) is none of bool, i8, /);
          expect(error.message, String(take)).toContain(`(did you mean ${right}?)`);
        }
        expect((await refusedBy(take, 'quark')).message).not.toContain('did you mean');
        expect((await refusedBy(take, { device })).message).toContain('options come after the dtype');
        expect((await refusedBy(take, 3)).message).toContain('a shape of several dimensions is a list');
      }
      for (const [wrong, right] of [
        ['i32', "pass { dtype: 'i32' }"],
        [[2, 1], 'pass { shape: [2, 1] }'],
      ] as const) {
        for (const take of [() => device.from([1, 2], wrong as never), () => array([1, 2], wrong as never)])
          expect((await refusedBy(take, undefined)).message).toContain(right);
      }
    });

    rule('S369', 'declarations of kernels and graphs take types and no names, and say which type to pass', async () => {
      const { stream } = chapter.device;
      const body = (() => {}) as never;
      const takers: readonly ((type: never) => unknown)[] = [
        (type) => input(type),
        (type) => output(type),
        (type) => inout(type),
        (type) => kernel('k', { a: type }, body),
        (type) => cudaKernel('k', { a: type }, '__global__ void k(float a) {}'),
        (type) => struct({ a: type }),
        (type) => arrayOf(type, 2),
        (type) => vec(type, 2),
        (type) => func([type], f32, ((x: number) => x) as never),
        (type) => func([f32], type, ((x: number) => x) as never),
        (type) => stream.capture({ a: type }, () => undefined),
      ];
      for (const take of takers) {
        for (const wrong of ['f32', 'float32', Float32Array]) {
          const error = await refusedBy(take, wrong);
          expect(error, String(take)).toBeInstanceOf(ArgumentError);
          expect(error.message, String(take)).toContain(': pass f32, which millrace exports, without quotes');
        }
      }
      expect((await refusedBy((type) => optional(type), 'f32')).message).toContain('input(f32)');
      const local = (): unknown =>
        kernel('k', { x: inout(f32) }, ({ x }, { i, local: own }) => {
          const t = own('float32' as 'f32', 4);
          x[i] = t[0]!;
        });
      const error = await rejectionOf((async () => local())());
      expect(error).toBeInstanceOf(CompileError);
      expect(error.message).toContain("(did you mean 'f32'?)");
    });
  });
});
