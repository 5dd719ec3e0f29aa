// Chapter 4, modules: kernels of one CUDA C++ source, and the variables that they share.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  CompileError,
  cudaKernel,
  cudaModule,
  type CudaParams,
  f32,
  f64,
  i32,
  inout,
  input,
  type InOut,
  type Kernel,
  output,
  StateError,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { COUNTERS, counters, MANAGED, one, WEIGHTS } from '../../support/modules.js';
import { chapterDevice, rulesOf, withDevice } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('4 kernels: modules', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S470', 'kernels of a module share its variables, and two modules of one source share none', async () => {
      const { device } = chapter;
      const [first, second] = [counters(), counters()];
      using out = device.zeros(1, 'i32');
      const launch = async (kernelOf: Kernel<{ out: InOut<'i32'> }>): Promise<number> => {
        device.stream.launch(kernelOf, one, { out });
        return (await out.read())[0]!;
      };
      device.stream.launch(first.add, one, { out, by: 7 });
      expect((await out.read())[0]).toBe(107);
      expect(await launch(first.step)).toBe(119);
      expect(await launch(first.step)).toBe(141);
      expect(await launch(second.step)).toBe(112);
      // Another Kernel object of the same function is the same kernel.
      expect(await launch(first.module.kernel('step', { out: inout(i32) }))).toBe(173);
    });

    rule('S470', 'kernels whose threads wait for each other share variables with those whose threads do not', async () => {
      const { device } = chapter;
      const module = cudaModule(`
__device__ int seen[64];
extern "C" __global__ void alone(int from) { seen[threadIdx.x] = from + threadIdx.x; }
extern "C" __global__ void turned(int* out) {
  __shared__ int values[64];
  values[threadIdx.x] = seen[threadIdx.x];
  __syncthreads();
  seen[threadIdx.x] = values[63 - threadIdx.x];
  out[threadIdx.x] = seen[threadIdx.x];
}
__device__ int from_next(int value) { return __shfl_sync(0xffffffffu, value, (threadIdx.x + 1) % 32); }
extern "C" __global__ void shifted(int* out) {
  seen[threadIdx.x] = from_next(seen[threadIdx.x]);
  out[threadIdx.x] = seen[threadIdx.x];
}`);
      const block = { grid: 1, block: 64 } as const;
      using out = device.zeros(64, 'i32');
      device.stream.launch(module.kernel('alone', { from: i32 }), block, { from: 100 });
      device.stream.launch(module.kernel('turned', { out: output(i32) }), block, { out });
      expect(await out.read()).toEqual(Int32Array.from({ length: 64 }, (_, i) => 163 - i));
      device.stream.launch(module.kernel('shifted', { out: output(i32) }), block, { out });
      expect(await out.read()).toEqual(Int32Array.from({ length: 64 }, (_, i) => (i % 32 === 31 ? 194 - i : 162 - i)));
    });

    rule('S470', 'a kernel of cudaKernel keeps its variables, and two kernels of one source share none', async () => {
      const { device } = chapter;
      const text = `__device__ int total = 5;
extern "C" __global__ void grow(int* out) {
  static __device__ int calls = 0;
  calls += 1;
  total *= 2;
  out[0] = total + 1000 * calls;
}`;
      const [grow, again] = [cudaKernel('grow', { out: output(i32) }, text), cudaKernel('grow', { out: output(i32) }, text)];
      using out = device.zeros(1, 'i32');
      for (const [each, expected] of [
        [grow, 1010],
        [grow, 2020],
        [again, 1010],
        [grow, 3040],
      ] as const) {
        device.stream.launch(each, one, { out });
        expect((await out.read())[0]).toBe(expected);
      }
    });

    rule('S471', 'kernels see copies to and fills of a variable, and reads and copies see their writes', async () => {
      const { device } = chapter;
      const { stream } = device;
      const module = cudaModule(WEIGHTS);
      const weigh = module.kernel('weigh', { x: input(f32), y: output(f32), n: i32 });
      const n = 37;
      const values = Float32Array.from({ length: n }, (_, i) => i - 5);
      using x = device.from(values);
      using y = device.empty(n);
      const weights = module.global(device, 'weights', f32, [2, 2]);
      const gravity = module.global(device, 'physics::inner::gravity', 'f32', []);
      const run = async (): Promise<Float32Array> => {
        stream.launch(weigh, { threads: n }, { x, y, n });
        return y.read();
      };
      expect(await gravity.item()).toBe(9.5);
      // Variables without a value in the source start as zeros.
      expect(await run()).toEqual(values.map(() => 9.5));
      stream.copy(weights, new Float32Array([1, 2, 3, 4]));
      expect(await run()).toEqual(values.map((v, i) => v * ((i % 4) + 1) + 9.5));
      stream.fill(weights.view(1), 8);
      stream.fill(gravity, -1);
      expect(await run()).toEqual(values.map((v, i) => v * [1, 2, 8, 8][i % 4]! - 1));
      expect([...(await weights.read())]).toEqual([1, 2, 8, 8]);
      using copied = weights.transpose().clone();
      expect([...(await copied.read())]).toEqual([1, 8, 2, 8]);
      stream.copy(weights, weights.transpose().clone());
      expect([...(await weights.read())]).toEqual([1, 8, 2, 8]);
    });

    rule('S471', 'static variables, structs and pointers are arrays of their size', async () => {
      const { device } = chapter;
      const { stream } = device;
      const { module: counting, step } = counters();
      using out = device.zeros(2, 'i32');
      const steps = counting.global(device, 'steps', i32, 3);
      stream.copy(steps, new Int32Array([0, 50, 0]));
      stream.launch(step, one, { out });
      expect((await out.read())[0]).toBe(160);
      expect([...(await steps.read())]).toEqual([0, 60, 0]);

      const module = cudaModule(WEIGHTS);
      const follow = module.kernel('follow', { out: inout(i32) });
      stream.launch(follow, one, { out });
      expect([...(await out.read())]).toEqual([-1, 413]);
      const scales = module.global(device, 'pairs', f32, [2, 2]).view(undefined, 0);
      expect([...(await scales.read())]).toEqual([2, 4]);
      stream.fill(scales, 6);
      using numbers = device.from(new Float32Array([10, 20, 30]));
      await numbers.read();
      const where = module.global(device, 'where', 'u64', 1);
      stream.copy(where, new BigUint64Array([numbers.nativePointer]));
      stream.launch(follow, one, { out });
      expect([...(await out.read())]).toEqual([20, 613]);
    });

    rule('S471', '__managed__ variables are those of the device, read and written by copies', async () => {
      const { device } = chapter;
      const { stream } = device;
      const module = cudaModule(MANAGED);
      const gather = module.kernel('gather', { y: output(f32) });
      const found = module.global(device, 'found', i32, 1);
      const values = module.global(device, 'values', f32, 8);
      using y = device.empty(8);
      expect((await found.read())[0]).toBe(7);
      stream.copy(
        values,
        Float32Array.from({ length: 8 }, (_unused, i) => i * i),
      );
      stream.launch(gather, { grid: 1, block: 8 }, { y });
      expect([...(await y.read())]).toEqual([0, 1, 4, 9, 16, 25, 36, 49]);
      expect((await found.read())[0]).toBe(15);
      expect((await values.read())[3]).toBe(-9);
      // Without a module, too, the variables keep their values from launch to launch.
      const alone = cudaKernel('gather', { y: output(f32) }, MANAGED);
      for (let n = 0; n < 2; n++) stream.launch(alone, { grid: 1, block: 8 }, { y });
      expect([...(await y.read())].map(Math.abs)).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
    });

    rule('S471', 'arrays of one variable share its memory, which outlives them', async () => {
      const { device } = chapter;
      const { module, add } = counters();
      using out = device.zeros(1, 'i32');
      {
        using count = module.global(device, 'count', i32, 1);
        device.stream.fill(count, 40);
        await device.synchronize();
        expect(count.nativePointer).toBe(module.global(device, 'count', 'i32', []).nativePointer);
      }
      device.stream.launch(add, one, { out, by: 2 });
      const count = module.global(device, 'count', i32, 1);
      expect((await count.read())[0]).toBe(42);
      count[Symbol.dispose]();
      expect(count.isDisposed).toBe(true);
      expect(thrownBy(() => device.stream.fill(count, 1))).toBeInstanceOf(StateError);
      expect((await module.global(device, 'count', i32, 1).read())[0]).toBe(42);
    });

    rule('S474', 'a wrong name, type or size is refused at the call with that of the source', () => {
      const { device } = chapter;
      const module = cudaModule(WEIGHTS);
      const refused = (call: () => unknown): ArgumentError => {
        const error = thrownBy(call) as ArgumentError;
        expect(error).toBeInstanceOf(ArgumentError);
        return error;
      };
      const name = refused(() => module.global(device, 'weight', f32, 4));
      expect(name).toMatchObject({ argument: 'name', value: 'weight' });
      expect(name.limit).toEqual(['physics::inner::gravity', 'weights', 'pairs', 'where']);
      expect(name.message).toContain('physics::inner::gravity, weights, pairs, where');
      expect(refused(() => module.global(device, 'gravity', f32, 1)).argument).toBe('name');
      expect(refused(() => module.global(device, 'weights', i32, 4))).toMatchObject({ argument: 'dtype', value: 'i32', limit: 'f32' });
      expect(refused(() => module.global(device, 'weights', f32, 5))).toMatchObject({ argument: 'shape', limit: 16 });
      expect(refused(() => module.global(device, 'where', 'u32', 1))).toMatchObject({ argument: 'shape', limit: 8 });
      expect(refused(() => module.global(device, 'fixed', i32, 2)).message).toContain('const');
      expect(refused(() => module.kernel('weigh', { x: input(f32), y: output(i32), n: i32 })).argument).toBe('params.y');
      expect(thrownBy(() => module.kernel('weights', {}))).toBeInstanceOf(CompileError);
    });

    rule('S476', 'a module is built once per device, and compile builds it ahead', async () => {
      const { device } = chapter;
      const { module, add, step } = counters();
      await Promise.all([device.compile(module), device.compile(add, module, step)]);
      using out = device.zeros(1, 'i32');
      device.stream.launch(add, one, { out, by: 1 });
      device.stream.launch(step, one, { out });
      expect((await out.read())[0]).toBe(113);
    });

    rule('S470', 'instances of kernel templates are kernels of a module, beside those that are no templates', async () => {
      const { device } = chapter;
      const module = cudaModule(`
__device__ int launches = 0;
namespace folds {
template <typename T, int BLOCK> __global__ void fold(const T* x, T* sum) {
  __shared__ T part[BLOCK];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) { sum[0] = part[0]; launches += 1; }
}
}
template <int BY> __global__ void shift(int* x) { x[threadIdx.x] += BY; if (threadIdx.x == 0) launches += 10; }
__global__ void told(int* out) { out[0] = launches; }`);
      const told = module.kernel('told', { out: output(i32) });
      const floats = module.kernel('fold<float, 64>', { x: input(f32), sum: output(f32) });
      const ints = module.kernel('folds::fold<int, 32>', { x: input(i32), sum: output(i32) });
      const [up, down] = [module.kernel('shift<1>', { x: inout(i32) }), module.kernel('shift<-1>', { x: inout(i32) })];
      // The same instance in other words, and another Kernel object of it.
      const again = module.kernel('shift< 1 >', { x: inout(i32) });
      using x = device.from(Float32Array.from({ length: 64 }, (_, i) => i / 4));
      using n = device.from(Int32Array.from({ length: 32 }, (_, i) => i * i));
      using sum = device.zeros(1);
      using total = device.zeros(1, 'i32');
      using out = device.zeros(1, 'i32');
      device.stream.launch(floats, { grid: 1, block: 64 }, { x, sum });
      device.stream.launch(ints, { grid: 1, block: 32 }, { x: n, sum: total });
      for (const kernel of [up, up, again, down]) device.stream.launch(kernel, { grid: 1, block: 32 }, { x: n });
      device.stream.launch(told, one, { out });
      expect([await sum.item(), await total.item(), await out.item()]).toEqual([504, 10_416, 42]);
      expect(await n.read()).toEqual(Int32Array.from({ length: 32 }, (_, i) => i * i + 2));
      device.stream.launch(module.kernel('shift<1>', { x: inout(i32) }), { grid: 1, block: 32 }, { x: n });
      expect(await n.item(0)).toBe(3);
      const late = thrownBy(() => module.kernel('shift<2>', { x: inout(i32) }));
      expect(late).toBeInstanceOf(ArgumentError);
      expect((late as Error).message).toContain("built already, without the instance 'shift<2>' of a template");
      expect(thrownBy(() => module.kernel('fold', { x: input(f32), sum: output(f32) }))).toBeInstanceOf(CompileError);
    });

    rule('S476', 'parameters that differ in the compiled source fail the launches of their kernel alone', async () => {
      const { device } = chapter;
      const module = cudaModule(`__device__ int kept = 5;
template <class T> struct Box { typedef T Held; };
__global__ void first(Box<int>::Held* out, Box<int>::Held by) { out[0] = kept + by; }
__global__ void second(Box<int>::Held* out, Box<int>::Held by) { out[0] = kept * by; }
__global__ void third(int* out) { out[0] = kept; }`);
      using out = device.zeros(1, 'i32');
      const launch = async (made: Kernel<CudaParams>, args: object): Promise<number> => {
        const launched = device.stream.launch(made, one, { out, ...args } as never);
        await launched.done;
        return out.item();
      };
      const first = module.kernel('first', { out: output(i32), by: i32 });
      const wrong = module.kernel('second', { out: output(i32), by: f32 });
      const ends = await Promise.allSettled([
        device.compile(module),
        device.compile(first),
        device.compile(wrong),
        device.compile(module.kernel('third', { out: output(i32) })),
      ]);
      expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
      const { reason } = ends[2] as PromiseRejectedResult;
      expect(reason).toBeInstanceOf(CompileError);
      expect((reason as CompileError).message).toContain(
        "The parameter 'by' (f32) is 'Box<int>::Held by' in the source, at position 2: its type there is a signed integer of 4 bytes",
      );
      expect(await launch(first, { by: 2 })).toBe(7);
      // Asked for when the module is there.
      expect(await launch(module.kernel('second', { out: output(i32), by: i32 }), { by: 2 })).toBe(10);
      await expect(launch(module.kernel('first', { out: output(i32), by: f64 }), { by: 2 })).rejects.toThrow("The parameter 'by' (f64)");
    });
  });

  describe('4 kernels: modules when devices open and close', () => {
    const rule = rulesOf(target);

    rule('S470', 'variables have the values of the source each time a device is opened', async () => {
      const { module, add } = counters();
      const plain = cudaKernel(
        'plain',
        { out: output(i32) },
        '__device__ int kept = 1; extern "C" __global__ void plain(int* out) { kept += 1; out[0] = kept; }',
      );
      for (let turn = 0; turn < 2; turn++) {
        await withDevice(target, {}, async (device) => {
          using out = device.zeros(1, 'i32');
          expect((await module.global(device, 'count', i32, 1).read())[0]).toBe(100);
          device.stream.launch(add, one, { out, by: 1 });
          expect((await out.read())[0]).toBe(101);
          device.stream.launch(plain, one, { out });
          expect((await out.read())[0]).toBe(2);
        });
      }
    });

    rule('S478', 'a closing device runs the queued kernels and copies', async () => {
      const text = `// ${target.name} ${process.pid} ${Date.now()}\n${COUNTERS}`;
      const module = cudaModule(text);
      const add = module.kernel('add', { out: inout(i32), by: i32 });
      const device = await target.open();
      const out = device.zeros(1, 'i32');
      const result = device.pinned(2, i32);
      // Not built yet.
      for (let n = 0; n < 10; n++) device.stream.launch(add, one, { out, by: 1 });
      device.stream.copy(result.subarray(0, 1), module.global(device, 'count', i32, 1));
      device.stream.copy(result.subarray(1, 2), out);
      await device.close();
      expect([...result.data]).toEqual([110, 110]);
      expect(thrownBy(() => module.global(device, 'count', i32, 1))).toBeInstanceOf(StateError);
    });
  });
});
