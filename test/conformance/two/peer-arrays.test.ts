// Chapter 3, seventh part: kernels that use arrays of another device where they are.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  BoundsError,
  cudaKernel,
  cudaModule,
  f32,
  i32,
  inout,
  input,
  kernel,
  output,
  StateError,
  StreamHazardError,
  struct,
  UpstreamError,
  type Device,
} from 'millrace';
import { add, matmul, sort, sum } from 'millrace/ops';
import { defineChapter } from '../../support/chapter.js';
import { runChild } from '../../support/child.js';
import { hold } from '../../support/latch.js';
import { proveOrder } from '../../support/order.js';
import { chapterDevices, rulesOf } from '../../support/rule.js';
import { isSettled, rejectionOf, thrownBy } from '../../support/wait.js';

const COUNT = 1024;

const added = kernel('peer_added', { x: input(f32), y: inout(f32) }, ({ x, y }, { i }) => {
  y[i] = x[i]! + y[i]!;
});
const copied = kernel('peer_copied', { x: input(f32), y: output(f32) }, ({ x, y }, { i }) => {
  y[i] = x[i]!;
});
const shifted = kernel('peer_shifted', { x: input(f32), y: output(f32), by: i32 }, ({ x, y, by }, { i }) => {
  y[i] = x[i + by]!;
});
const pair = struct({ x: input(f32), y: inout(f32) });
const ofStruct = cudaKernel(
  'peer_of_struct',
  { p: pair, n: i32 },
  `struct Pair { const float *x; float *y; };
   extern "C" __global__ void peer_of_struct(Pair p, int n) {
     int i = blockIdx.x * blockDim.x + threadIdx.x;
     if (i < n) p.y[i] += 2 * p.x[i];
   }`,
);
const counters = cudaModule(`__device__ float counters[16];
  extern "C" __global__ void peer_count(int n) { if (threadIdx.x < n) counters[threadIdx.x] += 1; }`);
const countUp = counters.kernel('peer_count', { n: i32 });

defineChapter((target) => {
  describe('3 memory: arrays of another device in kernels', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);
    const all = (value: number): Float32Array => new Float32Array(COUNT).fill(value);
    const arePeers = (): Promise<boolean> => chapter.other.peers.canGrant(chapter.device, 'pool');
    /** Runs the body while each device may use the other's arrays; nothing if the two cannot. */
    const granted = async (body: (device: Device, other: Device) => Promise<void>): Promise<void> => {
      const { device, other } = chapter;
      if (!(await arePeers())) return;
      await other.peers.grant(device, 'pool');
      await device.peers.grant(other, 'pool');
      try {
        await body(device, other);
      } finally {
        await other.peers.revoke(device, 'pool');
        await device.peers.revoke(other, 'pool');
      }
    };

    rule('S357', 'without a grant, a launch names the call that helps, and nothing is submitted', async () => {
      const { device, other } = chapter;
      using here = device.full(COUNT, 1);
      using there = other.full(COUNT, 2);
      const error = thrownBy(() => device.stream.launch(added, COUNT, { x: there, y: here })) as ArgumentError;
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error).toMatchObject({ argument: 'x', value: there, limit: device.info.id });
      for (const { info } of [device, other]) expect(error.message).toContain(info.id);
      if (await arePeers()) expect(error.message).toContain(`owner.peers.grant(peer, 'pool')`);
      else expect(error.message).toContain('copy it');
      expect(await here.read()).toEqual(all(1));
    });

    rule('S357', 'a kernel reads and writes arrays of the other device, and views of them', async () => {
      await granted(async (device, other) => {
        for (const [own, peer] of [
          [device, other],
          [other, device],
        ] as const) {
          using here = own.full(COUNT, 1);
          using there = peer.full(COUNT, 2);
          own.stream.launch(added, COUNT, { x: there, y: here });
          own.stream.launch(added, COUNT, { x: here, y: there });
          own.stream.launch(copied, COUNT / 2, { x: here.subarray(0, COUNT / 2), y: there.subarray(COUNT / 2, COUNT) });
          expect(await here.read()).toEqual(all(3));
          expect(await there.read()).toEqual(all(5).fill(3, COUNT / 2));
        }
      });
    });

    rule('S357', 'a pointer in a struct may be an array of the other device', async () => {
      await granted(async (device, other) => {
        using here = device.full(COUNT, 1);
        using there = other.full(COUNT, 2);
        device.stream.launch(ofStruct, { threads: COUNT }, { p: { x: there, y: here }, n: COUNT });
        device.stream.launch(ofStruct, { threads: COUNT }, { p: { x: here, y: there }, n: COUNT });
        expect([await here.read(), await there.read()]).toEqual([all(5), all(12)]);
      });
    });

    rule('S357', 'work of both devices on the array is in order, in each direction', async () => {
      await granted(async (device, other) => {
        await device.compile(added, copied);
        await other.compile(added, copied);
        using here = device.zeros(COUNT);
        using there = other.zeros(COUNT);
        const [one, two] = [device.createStream(), other.createStream()];
        using result = other.zeros(COUNT);
        await proveOrder(target, true, one, two, () => {
          one.launch(copied, COUNT, { x: here, y: there });
          two.launch(copied, COUNT, { x: there, y: result });
        });
        await proveOrder(target, true, two, one, () => {
          two.fill(there, 3);
          one.launch(copied, COUNT, { x: there, y: here });
        });
        expect(await here.read()).toEqual(all(3));
        await Promise.all([one.close(), two.close()]);
      });
    });

    rule('S357', 'a hundred launches of both devices on one array, each with what the former wrote', async () => {
      await granted(async (device, other) => {
        using one = device.full(COUNT, 1);
        using total = other.zeros(COUNT);
        using two = other.full(COUNT, 1);
        for (let n = 0; n < 50; n++) {
          device.stream.launch(added, COUNT, { x: one, y: total });
          other.stream.launch(added, COUNT, { x: two, y: total });
        }
        expect(await total.read()).toEqual(all(100));
      });
    });

    rule('S357', 'an array that is disposed right after the launch is freed after it', async () => {
      await granted(async (device, other) => {
        using here = device.zeros(COUNT);
        await device.compile(copied);
        const stream = device.createStream();
        await using latch = await hold(target, stream, copied);
        const there = other.full(COUNT, 7);
        stream.launch(copied, COUNT, { x: there, y: here });
        there[Symbol.dispose]();
        const others = Array.from({ length: 8 }, (_, n) => other.full(COUNT, n));
        await Promise.all(others.map((array) => array.read()));
        latch.open();
        expect(await here.read()).toEqual(all(7));
        for (const array of others) array[Symbol.dispose]();
        await stream.close();
      });
    });

    rule('S357', 'a checked stream refuses a launch that races with the other device', async () => {
      await granted(async (device, other) => {
        const [one, two] = [device.createStream({ ordering: 'checked' }), other.createStream({ ordering: 'checked' })];
        using here = one.zeros(COUNT);
        using there = two.zeros(COUNT);
        const racing = (): unknown => one.launch(copied, COUNT, { x: there, y: here });
        expect(thrownBy(racing)).toBeInstanceOf(StreamHazardError);
        one.waitStream(two);
        racing();
        expect(thrownBy(() => two.fill(there, 1))).toBeInstanceOf(StreamHazardError);
        two.waitStream(one);
        two.fill(there, 1);
        await Promise.all([one.close(), two.close()]);
      });
    });

    rule('S357', 'a failure poisons arrays of both devices, and a poisoned array fails launches of the other device', async () => {
      await granted(async (device, other) => {
        using here = device.ones(4);
        using there = other.ones(4);
        using further = other.ones(4);
        const first = await rejectionOf(device.stream.launch(shifted, 4, { x: here, y: there, by: 4 }).done);
        expect(first).toBeInstanceOf(BoundsError);
        expect((first as BoundsError).message).toContain('of x');
        const reads = [
          there.read(),
          other.stream.launch(copied, 4, { x: there, y: further }).done,
          further.read(),
          device.stream.launch(copied, 4, { x: further, y: here }).done,
          here.read(),
        ];
        for (const error of await Promise.all(reads.map(rejectionOf))) {
          expect(error).toBeInstanceOf(UpstreamError);
          expect((error as UpstreamError).cause).toBeInstanceOf(BoundsError);
        }
        for (const array of [here, there, further]) device.stream.fill(array, 1);
        device.stream.launch(copied, 4, { x: further, y: there });
        expect(await there.read()).toEqual(new Float32Array(4).fill(1));
      });
    });

    rule('S357', 'a launch that is issued after the failed one also fails, before the failure is known', async () => {
      await granted(async (device, other) => {
        await device.compile(shifted, copied);
        await other.compile(copied);
        for (let round = 0; round < 10; round++) {
          using here = device.ones(4);
          using there = other.ones(4);
          using result = other.ones(4);
          device.stream.launch(shifted, 4, { x: here, y: there, by: 4 });
          other.stream.launch(copied, 4, { x: there, y: result });
          expect(await rejectionOf(result.read())).toBeInstanceOf(UpstreamError);
        }
      });
    });

    rule('S357', `variables of modules are refused, whatever was granted, and can be copied`, async () => {
      const { device, other } = chapter;
      if (!(await other.peers.canGrant(device, 'memory'))) return;
      using here = device.zeros(16);
      const there = counters.global(other, 'counters', f32, 16);
      other.stream.launch(countUp, { grid: 1, block: 16 }, { n: 16 });
      await other.peers.grant(device, 'pool');
      const call = (): unknown => device.stream.launch(copied, 16, { x: there, y: here });
      await other.peers.grant(device, 'memory');
      const refused = thrownBy(call);
      expect(refused).toBeInstanceOf(ArgumentError);
      expect((refused as Error).message).toContain('cannot access variables of modules: copy it');
      device.stream.copy(here, there);
      expect((await here.read()).every((value) => value >= 1)).toBe(true);
      for (const what of ['pool', 'memory'] as const) await other.peers.revoke(device, what);
    });

    rule(
      'S357',
      `arrays for other processes need the access to 'memory'`,
      async () => {
        const { device, other } = chapter;
        if (!(await other.peers.canGrant(device, 'memory'))) return;
        using here = device.zeros(16);
        using there = other.interprocess(16, 'f32');
        other.stream.fill(there, 4);
        await other.peers.grant(device, 'pool');
        const call = (): unknown => device.stream.launch(copied, 16, { x: there, y: here });
        expect((thrownBy(call) as Error).message).toContain(`owner.peers.grant(peer, 'memory')`);
        await other.peers.revoke(device, 'pool');
        await other.peers.grant(device, 'memory');
        call();
        expect(await here.read()).toEqual(new Float32Array(16).fill(4));
        await other.peers.revoke(device, 'memory');
      },
      { unless: !target.supports.interprocess && 'CPU devices have no arrays for other processes' },
    );

    rule('S357', 'arrays that do not fit the parameter are refused as those of the device', async () => {
      await granted(async (device, other) => {
        using here = device.zeros(COUNT);
        using matrix = other.zeros([4, 4]);
        using integers = other.zeros(COUNT, 'i32');
        using gone = other.zeros(COUNT);
        gone[Symbol.dispose]();
        const x = (value: unknown): unknown => device.stream.launch(added, COUNT, { x: value as never, y: here });
        expect(thrownBy(() => x(matrix))).toMatchObject({ argument: 'x', limit: 1 });
        expect(thrownBy(() => x(integers))).toMatchObject({ argument: 'x', limit: 'f32' });
        expect(thrownBy(() => x(matrix.view(undefined, 0)))).toBeInstanceOf(ArgumentError);
        expect(thrownBy(() => x(gone))).toBeInstanceOf(StateError);
      });
    });

    rule('S358', 'a launch that was submitted before a revocation runs, and revoke waits for it', async () => {
      await granted(async (device, other) => {
        using here = device.zeros(COUNT);
        using there = other.full(COUNT, 5);
        await device.compile(copied);
        const stream = device.createStream();
        await using latch = await hold(target, stream, copied);
        const launched = stream.launch(copied, COUNT, { x: there, y: here });
        const revoked = other.peers.revoke(device, 'pool');
        expect(thrownBy(() => device.stream.launch(copied, COUNT, { x: there, y: here }))).toBeInstanceOf(ArgumentError);
        expect(await other.peers.isGranted(device, 'pool')).toBe(false);
        expect(await isSettled(revoked)).toBe(false);
        latch.open();
        await revoked;
        expect(launched.isComplete).toBe(true);
        expect(await here.read()).toEqual(all(5));
        expect(thrownBy(() => device.stream.launch(copied, COUNT, { x: there, y: here }))).toBeInstanceOf(ArgumentError);
        await other.peers.grant(device, 'pool');
        await stream.launch(copied, COUNT, { x: there, y: here }).done;
        await stream.close();
      });
    });

    rule('S358', 'a function that holds a stream cannot revoke what the stream needs', async () => {
      await granted(async (device, other) => {
        using here = device.zeros(COUNT);
        using there = other.full(COUNT, 5);
        const stream = device.createStream();
        let revoked: Promise<unknown> | undefined;
        const held = stream.hold(
          async () => {
            stream.launch(copied, COUNT, { x: there, y: here });
            revoked = rejectionOf(other.peers.revoke(device, 'pool'));
            await revoked;
          },
          { timeoutMs: 20_000 },
        );
        await held.done;
        expect(await revoked).toBeInstanceOf(StateError);
        expect(await other.peers.isGranted(device, 'pool')).toBe(true);
        expect(await here.read()).toEqual(all(5));
        await stream.close();
      });
    });

    rule('S357', 'the other device closes after the launches, and a launch rejects if it is lost', async () => {
      const second = target.spec.startsWith('cuda') ? 'cuda:1' : 'cpu:1';
      if (!(await arePeers())) return;
      const lines = `import { cudaKernel, f32, input, openDevice, output } from 'millrace';
        const copied = cudaKernel('copied', { x: input(f32), y: output(f32) }, 'extern "C" __global__ void copied(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x]; }');
        const device = await openDevice(${JSON.stringify(target.spec)});
        const results = [];
        for (const end of ['close', 'destroy']) {
          const other = await openDevice('${second}');
          await other.peers.grant(device, 'pool');
          const stream = device.createStream();
          const x = other.full(4, 7), y = device.zeros(4);
          await Promise.all([device.synchronize(), other.synchronize(), device.compile(copied)]);
          let release;
          stream.hold(() => new Promise((resolve) => (release = resolve)), { timeoutMs: 60000 });
          const launched = stream.launch(copied, { grid: 1, block: 4 }, { x, y });
          const ended = launched.done.then(() => 'done', ({ name, reason, device: lost }) => [name, reason, lost]);
          const over = end === 'close' ? other.close() : other.destroy('enough');
          if (end === 'destroy') await over;
          while (release === undefined) await new Promise((resolve) => setImmediate(resolve));
          release();
          results.push(await ended);
          await over;
          if (end === 'close') results.push([...(await y.read())]);
        }
        await device.stream.fill(device.zeros(1), 1).done;
        results.push(device.state);
        console.log(JSON.stringify(results));
        process.exit();`;
      const ended = await runChild(lines, { MILLRACE_CPU_DEVICES: '2' });
      expect(ended.stderr).toBe('');
      expect(JSON.parse(ended.stdout)).toEqual(['done', [7, 7, 7, 7], ['DeviceLostError', 'closed', second], 'open']);
    });

    rule('S1102', 'operations take operands of another device where the options name the place and access is granted', async () => {
      const { device, other } = chapter;
      using here = device.full([2, 4], 1);
      using there = other.full([4, 2], 2);
      const refused = thrownBy(() => add(here, there.transpose(), { device }));
      expect(refused).toMatchObject({ argument: 'array', value: expect.anything() as unknown });
      for (const { info } of [device, other]) expect(refused.message).toContain(info.id);
      await granted(async () => {
        expect(thrownBy(() => add(here, there.reshape([2, 4])))).toBeInstanceOf(ArgumentError);
        using sums = add(here, there.transpose(), { stream: device.stream });
        expect([...(await sums.read())]).toEqual(Array(8).fill(3));
        add(here, 4, { out: there.reshape([2, 4]), device });
        expect([...(await there.read())]).toEqual(Array(8).fill(5));
        using product = matmul(here, there, { device: other });
        expect(product.device).toBe(other);
        expect([...(await product.read())]).toEqual(Array(4).fill(20));
        using total = sum(there, { device });
        expect(await total.item()).toBe(40);
        using sorted = sort(there, { axis: 0, device });
        expect([...(await sorted.read())]).toEqual(Array(8).fill(5));
      });
    });
  });
});
