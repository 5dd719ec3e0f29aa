// Chapter 4, modules: the order of launches and other uses of variables, and the effect of failures on variables.
import { describe, expect } from 'vitest';
import {
  BoundsError,
  CompileError,
  cudaModule,
  type Device,
  f32,
  i32,
  inout,
  input,
  type Kernel,
  output,
  StreamHazardError,
  UpstreamError,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { stray } from '../../support/kernels.js';
import { hold } from '../../support/latch.js';
import { counters, one, WEIGHTS } from '../../support/modules.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

/** An array that a failure poisoned. */
async function poisoned(device: Device, length: number) {
  const x = device.zeros(length);
  const error = await rejectionOf(device.stream.launch(stray, { threads: 1 }, { x, by: 100 }).done);
  expect(error).toBeInstanceOf(BoundsError);
  return x;
}

defineChapter((target) => {
  describe('4 kernels: variables of modules', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S472', 'a use of a variable comes after launches that were submitted before its request', async () => {
      const { device } = chapter;
      const { module, add, step } = counters();
      const [a, b] = [device.createStream(), device.createStream()];
      using out = a.zeros(1, 'i32');
      using other = b.zeros(1, 'i32');
      {
        await using latch = await hold(target, a, add as Kernel, step as Kernel);
        for (let n = 0; n < 5; n++) a.launch(add, one, { out, by: 1 });
        const count = module.global(device, 'count', i32, 1);
        b.fill(count, 500);
        const behind = b.launch(step, one, { out: other });
        // Launches of all its kernels, on any stream, come after that.
        a.launch(add, one, { out, by: 1000 });
        await device.createStream().record().done;
        expect(behind.isComplete).toBe(false);
        latch.open();
      }
      expect((await other.read())[0]).toBe(512);
      expect((await module.global(device, 'count', i32, 1).read())[0]).toBe(1512);
      expect((await out.read())[0]).toBe(1512);
      await Promise.all([a.close(), b.close()]);
    });

    rule('S472', 'a requested __device__ variable orders launches, other variables do not', async () => {
      const { device } = chapter;
      const asked = counters();
      const unasked = counters();
      const constant = cudaModule('__constant__ int c[2]; extern "C" __global__ void get(int* out) { out[0] = c[1]; }');
      const get = constant.kernel('get', { out: inout(i32) });
      const [a, b] = [device.createStream(), device.createStream()];
      const c = constant.global(device, 'c', i32, 2);
      a.copy(c, new Int32Array([3, 4]));
      await asked.module.global(device, 'count', i32, 1).read();
      using x = a.zeros(1, 'i32');
      using y = b.zeros(1, 'i32');
      await device.synchronize();
      {
        await using latch = await hold(target, a, asked.add as Kernel, unasked.add as Kernel, get as Kernel);
        a.launch(unasked.add, one, { out: x, by: 1 });
        a.launch(get, one, { out: x });
        await b.launch(unasked.add, one, { out: y, by: 1 }).done;
        await b.launch(get, one, { out: y }).done;
        expect((await y.read())[0]).toBe(4);
        a.launch(asked.add, one, { out: x, by: 1 });
        const behind = b.launch(asked.add, one, { out: y, by: 1 });
        await device.createStream().record().done;
        expect(behind.isComplete).toBe(false);
        latch.open();
        await behind.done;
      }
      expect((await y.read())[0]).toBe(102);
      // A host's write of a constant comes after the launches that read it.
      {
        await using latch = await hold(target, a, get as Kernel);
        a.launch(get, one, { out: x });
        b.fill(c, 9);
        latch.open();
      }
      expect((await x.read())[0]).toBe(4);
      expect([...(await c.read())]).toEqual([9, 9]);
      await Promise.all([a.close(), b.close()]);
    });

    rule('S473', 'checked streams refuse unordered uses, also after launches before the request', async () => {
      const { device } = chapter;
      const { module, add } = counters();
      const [a, b] = [
        device.createStream({ ordering: 'checked', label: 'launching' }),
        device.createStream({ ordering: 'checked', label: 'filling' }),
      ];
      using out = a.zeros(1, 'i32');
      using other = b.zeros(1, 'i32');
      await device.compile(module);
      {
        await using latch = await hold(target, a, add as Kernel);
        a.launch(add, one, { out, by: 1 });
        const count = module.global(device, 'count', i32, 1);
        const hazard = thrownBy(() => b.fill(count, 7)) as StreamHazardError;
        expect(hazard).toBeInstanceOf(StreamHazardError);
        expect(hazard.first).toMatchObject({ stream: 'launching', access: 'write', operation: { kind: 'launch', label: 'add' } });
        expect(hazard.second).toMatchObject({ stream: 'filling', access: 'write' });
        expect(thrownBy(() => b.launch(add, one, { out: other, by: 1 }))).toBeInstanceOf(StreamHazardError);
        b.waitStream(a);
        b.fill(count, 7);
        b.launch(add, one, { out: other, by: 1 });
        latch.open();
      }
      expect((await other.read())[0]).toBe(8);
      await Promise.all([a.close(), b.close()]);
    });

    rule('S475', 'a mismatch that only the image shows rejects uses of the array, and the kernels still run', async () => {
      const { device } = chapter;
      const module = cudaModule(
        `#define SIZE 3
#define VARIABLE(name) __device__ int name[SIZE]
VARIABLE(hidden);
__device__ float sized[SIZE];
extern "C" __global__ void sum(int* out) { out[0] = hidden[0] + hidden[1] + hidden[2] + (int)sized[1]; }`,
      );
      const sum = module.kernel('sum', { out: inout(i32) });
      const wrong = [
        module.global(device, 'sized', f32, 4),
        module.global(device, 'hidden', 'f64', 3),
        // The name of a macro that is not a variable.
        module.global(device, 'SIZE', i32, 1),
      ];
      using out = device.zeros(1, 'i32');
      const hidden = module.global(device, 'hidden', i32, 3);
      const sized = module.global(device, 'sized', f32, 3);
      device.stream.copy(hidden, new Int32Array([1, 2, 3]));
      device.stream.fill(sized, 10);
      const launch = device.stream.launch(sum, one, { out });
      for (const [n, array] of wrong.entries()) {
        const error = (await rejectionOf(array.read())) as UpstreamError;
        expect(error).toBeInstanceOf(UpstreamError);
        expect(error.cause).toBeInstanceOf(CompileError);
        expect((error.cause as CompileError).diagnostics[0]?.code, `array ${n}`).toBe('K705');
        expect((await rejectionOf(device.stream.fill(array as typeof sized, 1).done)) as Error).toBeInstanceOf(UpstreamError);
      }
      await launch.done;
      expect((await out.read())[0]).toBe(16);
    });

    rule('S475', 'a source that does not compile fails its launches and the uses of its variables', async () => {
      const { device } = chapter;
      const module = cudaModule('__device__ int count; extern "C" __global__ void bad(int* out) { out[0] = count + missing_name; }');
      using out = device.zeros(1, 'i32');
      const read = module.global(device, 'count', i32, 1).read();
      const launched = device.stream.launch(module.kernel('bad', { out: inout(i32) }), one, { out }).done;
      const [compiling, reading, launching] = await Promise.all([
        rejectionOf(device.compile(module)),
        rejectionOf(read),
        rejectionOf(launched),
      ]);
      for (const error of [compiling, launching, (reading as UpstreamError).cause]) {
        expect(error).toBeInstanceOf(CompileError);
        expect((error as Error).message).toContain('missing_name');
      }
    });

    rule('S477', 'a poisoned constant stops the kernels that read it until it is overwritten', async () => {
      const { device } = chapter;
      const { stream } = device;
      const module = cudaModule(WEIGHTS);
      const weigh = module.kernel('weigh', { x: input(f32), y: output(f32), n: i32 });
      const weights = module.global(device, 'weights', f32, 4);
      using x = device.full(4, 2);
      using y = device.zeros(4);
      stream.fill(weights, 1);
      using bad = await poisoned(device, 4);
      expect(await rejectionOf(stream.copy(weights, bad).done)).toBeInstanceOf(UpstreamError);
      const error = (await rejectionOf(stream.launch(weigh, { threads: 4 }, { x, y, n: 4 }).done)) as UpstreamError;
      expect(error).toBeInstanceOf(UpstreamError);
      expect(error.cause).toBeInstanceOf(BoundsError);
      stream.fill(weights, 3);
      await stream.launch(weigh, { threads: 4 }, { x, y, n: 4 }).done;
      expect([...(await y.read())]).toEqual([15.5, 15.5, 15.5, 15.5]);
    });

    rule('S477', 'a failed launch poisons the variables that it may have written', async () => {
      const { device } = chapter;
      const { stream } = device;
      const module = cudaModule(WEIGHTS);
      const weigh = module.kernel('weigh', { x: input(f32), y: output(f32), n: i32 });
      const weights = module.global(device, 'weights', f32, 4);
      const gravity = module.global(device, 'physics::inner::gravity', f32, 1);
      using x = await poisoned(device, 4);
      using y = device.zeros(4);
      expect(await rejectionOf(stream.launch(weigh, { threads: 4 }, { x, y, n: 4 }).done)).toBeInstanceOf(UpstreamError);
      expect((await rejectionOf(gravity.read())) as Error).toBeInstanceOf(UpstreamError);
      expect([...(await weights.read())]).toEqual([0, 0, 0, 0]);
      stream.fill(gravity, 1);
      stream.fill(x, 1);
      await stream.launch(weigh, { threads: 4 }, { x, y, n: 4 }).done;
      expect([...(await y.read())]).toEqual([1, 1, 1, 1]);
    });
  });
});
