// Chapter 8: one device that several threads use.
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import { describe, expect } from 'vitest';
import {
  type ArrayToken,
  ArgumentError,
  cudaKernel,
  type Device,
  DeviceLostError,
  type DeviceToken,
  f32,
  inout,
  kernel,
  openShared,
  synchronize,
  UpstreamError,
  WaitTimeoutError,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { rulesOf, withDevice } from '../../support/rule.js';
import { startSharer, untilGivenBack } from '../../support/sharer.js';
import { isSettled, rejectionOf, thrownBy } from '../../support/wait.js';

const nothing = kernel('nothing', {}, () => {});

defineChapter((target) => {
  describe('8 sharing', () => {
    const rule = rulesOf(target);
    const alone = (body: (device: Device) => Promise<void>): Promise<void> => withDevice(target, {}, body);

    rule('S813', 'another thread opens the device by its token and has streams of its own', async () => {
      await alone(async (device) => {
        const sharers = [startSharer('reads', device.share()), startSharer('reads', device.share())];
        for (const { next } of sharers) expect(await next()).toBe(`read 9 on ${device.info.id}`);
        for (const { exited } of sharers) await exited;
        expect(device.state).toBe('open');
        expect(await untilGivenBack(device, { blocks: 0 })).toBe('all given back');
      });
    });

    rule('S813', 'in the thread that opened the device, the token gives another Device of it', async () => {
      await alone(async (device) => {
        const again = await openShared(device.share());
        expect([again === device, again.isSameDevice(device)]).toEqual([false, true]);
        await again.close();
        expect(device.state).toBe('open');
      });
    });

    rule('S813', 'what is no token is an ArgumentError, the token of a device that is gone a DeviceLostError', async () => {
      const device = await target.open();
      // Its address is for the library alone.
      const token = device.share() as DeviceToken & { readonly address: object };
      for (const bad of [undefined, 'cpu', {}, { ...token, ordering: 'any' }, { ...token, address: { ...token.address, process: 1 } }]) {
        expect(await rejectionOf(openShared(bad as never))).toBeInstanceOf(ArgumentError);
      }
      for (const [name, value] of Object.entries({ key: 'guessed', channel: 99, thread: 99, process: 1 })) {
        const changed = { ...token, address: { ...token.address, [name]: value } } as DeviceToken;
        expect((await rejectionOf(openShared(changed))).message).toContain('was changed');
      }
      let release: () => void = () => undefined;
      const released = new Promise<void>((resolve) => (release = resolve));
      device.stream.hold(() => released, { timeoutMs: 30_000 });
      const closing = device.close();
      expect(await rejectionOf(openShared(token))).toBeInstanceOf(DeviceLostError);
      release();
      await closing;
      expect(await rejectionOf(openShared(token))).toBeInstanceOf(DeviceLostError);
      expect(thrownBy(() => device.share()).message).toContain('closed');
    });

    rule('S504', 'synchronize of a device, and of all devices, waits for the streams of other threads', async () => {
      await alone(async (device) => {
        const { worker, next, exited } = startSharer('holdsUntilTold', device.share());
        expect(await next()).toBe('submitted');
        // This thread has nothing pending.
        await device.stream.synchronize();
        expect(await rejectionOf(device.synchronize({ timeoutMs: 0 }))).toBeInstanceOf(WaitTimeoutError);
        const waits = [device.synchronize(), synchronize()];
        for (const wait of waits) expect(await isSettled(wait)).toBe(false);
        worker.postMessage('let go');
        await Promise.all(waits);
        await exited;
      });
    });

    rule('S814', 'the first use of an adopted array waits for what the other thread submitted, on the device', async () => {
      await alone(async (device) => {
        const x = device.full([4, 6], 1, 'i32');
        let release: () => void = () => undefined;
        const released = new Promise<void>((resolve) => (release = resolve));
        device.stream.hold(() => released, { timeoutMs: 30_000 });
        device.stream.fill(x, 5);
        const { worker, next, exited } = startSharer('adopts', { device: device.share(), x: x.view(1).share() });
        expect(await next()).toBe('pending true');
        release();
        using back = device.adopt(await next(), 'i32');
        // Each thread disposes its own array; the memory stays while one has it.
        x[Symbol.dispose]();
        worker.postMessage('adopted');
        await exited;
        expect([...(await back.read())]).toEqual([7, 7, 5, 5, 5, 5]);
        back[Symbol.dispose]();
        expect(await untilGivenBack(device, { blocks: 0 })).toBe('all given back');
      });
    });

    rule('S814', 'what is no token of an array, or of one on another device, is an ArgumentError', async () => {
      await alone(async (device) => {
        using x = device.full([4, 6], 1, 'i32');
        // Its fields are for the library alone.
        const token = x.share() as ArrayToken<'i32'> & { readonly key: string };
        const parts = { key: 'other', strides: [1], handle: '1', byteOffset: -4, storageBytes: 8, uses: [{}], shape: [-1], dtype: 'any' };
        // Each is a token as it could be, but not the one that was given: a handle of a texture, another order of the elements.
        using texture = device.createTexture({ shape: [4, 6], dtype: 'i32' });
        const others = {
          shape: [6, 4],
          dtype: 'f32',
          device: 'cuda:9',
          handle: (texture as unknown as { readonly storage: { readonly handle: number } }).storage.handle,
          uses: [],
          strides: [1, 4],
        };
        for (const [name, value] of Object.entries(others))
          expect(thrownBy(() => device.adopt({ ...token, [name]: value } as never)).message, name).toContain('was changed');
        // oxlint-disable-next-line no-sparse-arrays -- what is tested.
        expect(thrownBy(() => device.adopt({ ...token, uses: [,] } as never))).toBeInstanceOf(ArgumentError);
        const changed = Object.entries(parts).map(([name, value]) => ({ ...token, [name]: value }));
        for (const bad of [undefined, 5, {}, device.share(), ...changed]) {
          expect(thrownBy(() => device.adopt(bad as never))).toBeInstanceOf(ArgumentError);
        }
        expect(thrownBy(() => device.adopt(token, 'f32')).message).toBe("The token is of an array of dtype 'i32', not 'f32'.");
        expect(thrownBy(() => device.adopt(device.share() as never)).message).toContain('openShared takes tokens of devices');
        expect((await rejectionOf(openShared(token as never))).message).toContain('device.adopt takes tokens of arrays');
      });
    });

    rule('S814', 'the token of an array on the same device, opened by another thread on its own, names openShared', async () => {
      await alone(async (device) => {
        const { next, exited } = startSharer('opensItsOwn', device.info.id);
        const token = await next();
        const { message } = thrownBy(() => device.adopt(token, 'f32'));
        expect(message).toContain(`on the ${device.info.id} that another thread opened`);
        expect(message).toContain('openShared(token)');
        await exited;
      });
    });

    rule('S814', 'an array that was disposed before it was adopted fails what uses it', async () => {
      await alone(async (device) => {
        const x = device.full(4, 1, 'i32');
        const token = x.share();
        x[Symbol.dispose]();
        await device.synchronize();
        using mine = device.adopt(token);
        const error = await rejectionOf(mine.read());
        expect(error).toBeInstanceOf(UpstreamError);
        expect((error.cause as Error).message).toContain('the shared array was disposed before it was adopted');
        expect(thrownBy(() => device.adopt({ ...token, key: 'another device' } as never))).toBeInstanceOf(ArgumentError);
        expect(thrownBy(() => device.adopt({ ...token, shape: [5] }))).toBeInstanceOf(ArgumentError);
        expect(thrownBy(() => x.share()).message).toContain('disposed');
      });
    });

    rule('S818', 'postMessage of what belongs to its thread names what can be posted', async () => {
      await alone(async (device) => {
        const { stream } = device;
        using x = device.zeros(4);
        using pinned = device.pinned(4);
        using event = stream.record();
        const text = cudaKernel('nothing', {}, 'extern "C" __global__ void nothing() {}');
        const slots: object[] = [];
        const graph = stream.capture({ n: f32, y: inout(f32) }, (s, { n, y }) => {
          slots.push(n, y);
          s.fill(x, 1);
        });
        const values = {
          'device.share()': [device, stream],
          'array.share()': [x, x.subarray(1), event],
          'pinned.data': [pinned],
          'import the module': [text, nothing],
          'capture the graph in the other thread': [graph],
          'capture in the other thread': slots,
        };
        const { port1, port2 } = new MessageChannel();
        for (const [instead, objects] of Object.entries(values)) {
          for (const object of objects) {
            const error = thrownBy(() => port1.postMessage({ nested: [object] }));
            expect([error.name, error.message]).toEqual(['DataCloneError', expect.stringContaining(instead)]);
          }
        }
        expect(receiveMessageOnPort(port2)).toBeUndefined();
        port1.close();
      });
    });

    rule('S815', 'pinned memory passes to another thread as it is, and is pinned there again', async () => {
      await alone(async (device) => {
        using pinned = device.pinned(1000, 'u32');
        pinned.data.fill(3);
        const { next, exited } = startSharer('pins', { device: device.share(), data: pinned.data });
        expect(await next()).toBe('true 4 3');
        await exited;
        expect([pinned.data[0], pinned.data[999]]).toEqual([4, 3]);
        using x = device.empty(1000, 'u32');
        device.stream.copy(x, pinned);
        expect(await x.item(0)).toBe(4);
      });
    });

    rule('S816', 'the Devices of other threads are lost when the opener closes the device', async () => {
      const device = await target.open();
      const { next, exited } = startSharer('outlives', device.share());
      expect(await next()).toBe('open');
      await device.close();
      expect(await next()).toMatch(/^DeviceLostError closed: .* was closed by the thread that opened it\. \| closed true /);
      await exited;
    });

    rule('S817', 'a thread that ends takes nothing along: its streams end, its memory is freed, others go on', async () => {
      await alone(async (device) => {
        const { worker, next } = startSharer('holds', device.share());
        using mine = device.adopt(await next(), 'i32');
        const read = mine.read();
        // Its stream is held by a function that never returns.
        await worker.terminate();
        expect((await read).length).toBe(1000);
        expect(await untilGivenBack(device, { blocks: 1 })).toBe('all given back');
      });
    });
  });
});
