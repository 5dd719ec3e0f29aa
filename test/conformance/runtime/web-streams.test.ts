// Chapter 9: arrays as web streams.
import diagnostics from 'node:diagnostics_channel';
import { Readable } from 'node:stream';
import { describe, expect } from 'vitest';
import { ArgumentError, DeviceLostError, StateError, UpstreamError, inout, kernel, u8 } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { witness } from '../../support/order.js';
import { chapterDevice, rulesOf, withDevice } from '../../support/rule.js';
import { collectGarbage, eventually, isSettled, rejectionOf, thrownBy, turn } from '../../support/wait.js';

const { Response } = globalThis as unknown as { readonly Response: new (body: unknown) => { arrayBuffer(): Promise<ArrayBuffer> } };

/** Makes an out-of-bounds access of `x`, which poisons it. */
const outside = kernel('outside_of_stream', { x: inout(u8) }, ({ x }, { i }) => {
  x[i + 1_000_000] = 1;
});

defineChapter((target) => {
  describe('9 observation: web streams', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S930', 'a Response, a Node stream and a loop get every byte once, in order', async () => {
      using x = chapter.device.from(Uint32Array.from({ length: 1000 }, (_, n) => n));
      const expected = new Uint8Array((await x.read()).buffer);
      expect(new Uint8Array(await new Response(x.toReadable({ chunkBytes: 96 })).arrayBuffer())).toEqual(expected);
      const sizes: number[] = [];
      // A chunk has whole elements.
      for await (const chunk of x.toReadable({ chunkBytes: 1027 })) sizes.push(chunk.byteLength);
      expect(sizes).toEqual([1024, 1024, 1024, 928]);
      const parts: Buffer[] = [];
      for await (const part of Readable.fromWeb(x.toReadable() as never)) parts.push(part as Buffer);
      expect([parts.length, new Uint8Array(Buffer.concat(parts))]).toEqual([1, expected]);
    });

    rule('S930', 'a reader with its own buffers gets them filled', async () => {
      using x = chapter.device.from(Uint8Array.from({ length: 1000 }, (_, n) => n % 251));
      const reader = x.toReadable({ chunkBytes: 384 }).getReader({ mode: 'byob' });
      const bytes: number[] = [];
      for (;;) {
        const { value, done } = await reader.read(new Uint8Array(300));
        if (done) break;
        bytes.push(...value);
      }
      expect(bytes).toEqual(Array.from({ length: 1000 }, (_, n) => n % 251));
    });

    rule('S930', 'views give their elements in their own order, and empty arrays give nothing', async () => {
      const { device } = chapter;
      using x = device.from(
        Int16Array.from({ length: 7 * 5 * 6 }, (_, n) => n),
        { shape: [7, 5, 6] },
      );
      const views = [
        x.transpose(),
        x.view(undefined, [undefined, undefined, -2]),
        x.view([1, 6, 2], 3),
        x.view(3, 4, 5),
        x.transpose([1, 0, 2]),
      ];
      for (const view of views) {
        const expected = new Uint8Array((await view.read()).buffer);
        for (const chunkBytes of [2, 7, 22, 64, 1000]) {
          const streamed = new Uint8Array(await new Response(view.toReadable({ chunkBytes })).arrayBuffer());
          expect(streamed, `${view.label}, ${chunkBytes}`).toEqual(expected);
        }
      }
      using none = device.zeros([3, 0], 'f64');
      expect((await new Response(none.toReadable()).arrayBuffer()).byteLength).toBe(0);
      const reader = none.toReadable().getReader({ mode: 'byob' });
      expect((await reader.read(new Uint8Array(8))).done).toBe(true);
    });

    rule('S930', 'no other code refers to a chunk', async () => {
      using x = chapter.device.full(1000, 3, 'u8');
      const buffers = new Set<ArrayBufferLike>();
      for await (const chunk of x.toReadable({ chunkBytes: 100 })) {
        expect([chunk.buffer instanceof ArrayBuffer, chunk.every((byte) => byte === 3)]).toEqual([true, true]);
        buffers.add(chunk.buffer);
        chunk.fill(0);
      }
      expect(buffers.size).toBe(10);
      expect((await x.read()).every((byte) => byte === 3)).toBe(true);
    });

    rule('S931', 'a chunk waits for the last writer of its elements and for nothing else', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(200, 1, 'u8');
      await device.synchronize();
      await using latch = await hold(target, stream);
      stream.fill(x.subarray(100), 2);
      const reader = x.toReadable({ chunkBytes: 100 }).getReader();
      expect((await reader.read()).value).toEqual(new Uint8Array(100).fill(1));
      const second = reader.read();
      await witness(device.defaultStream);
      expect(await isSettled(second)).toBe(false);
      latch.open();
      expect((await second).value).toEqual(new Uint8Array(100).fill(2));
      expect((await reader.read()).done).toBe(true);
      await stream.close();
    });

    rule('S932', 'at most one chunk is read ahead of a slow consumer', async () => {
      const { device } = chapter;
      const chunks = 50;
      using x = device.full(chunks * 128, 5, 'u8');
      await device.synchronize();
      let submitted = 0;
      const count = (message: unknown): void => {
        const { operation } = message as { readonly operation: { readonly kind: string; readonly bytes?: number } };
        if (operation.kind === 'copy' && operation.bytes === 128) submitted++;
      };
      diagnostics.subscribe('millrace:operation', count);
      try {
        const reader = x.toReadable({ chunkBytes: 128 }).getReader();
        for (let taken = 0; taken < chunks; taken++) {
          // Wait long enough for all chunks that the stream might read ahead.
          for (let round = 0; round < 3; round++) {
            await device.synchronize();
            for (let n = 0; n < 5; n++) await turn();
          }
          expect(submitted - taken).toBeLessThanOrEqual(1);
          expect((await reader.read()).value?.byteLength).toBe(128);
        }
        expect((await reader.read()).done).toBe(true);
        expect(submitted).toBe(chunks);
      } finally {
        diagnostics.unsubscribe('millrace:operation', count);
      }
    });

    rule('S932', '1,000 chunks need only the memory of a few', async () => {
      const { device } = chapter;
      const chunkBytes = 64 * 1024;
      using x = device.full(1000 * chunkBytes, 6, 'u8');
      await device.synchronize();
      const memory = (): number => {
        collectGarbage();
        return process.memoryUsage().arrayBuffers;
      };
      const before = memory();
      // V8 frees buffers concurrently, so unreferenced ones are freed soon.
      const isFlat = (): boolean => memory() - before < 20 * chunkBytes;
      let seen = 0;
      for await (const chunk of x.toReadable({ chunkBytes })) {
        if (chunk[7] !== 6 || chunk.byteLength !== chunkBytes) throw new Error(`Chunk ${seen} is wrong.`);
        if (seen++ % 200 === 100) await eventually('the chunks are collected', isFlat);
      }
      expect(seen).toBe(1000);
      await eventually('the last chunks are collected', isFlat);
      expect((await device.pool.stats()).stagingBytes).toBe(0);
    });

    rule('S933', 'disposing the array early errors the stream, and no chunk has bytes of another array', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const x = device.full(4096, 7, 'u8');
      await device.synchronize();
      const reader = x.toReadable({ chunkBytes: 1024 }).getReader();
      expect((await reader.read()).value?.every((byte) => byte === 7)).toBe(true);
      x[Symbol.dispose]();
      using other = stream.full(4096, 9, 'u8');
      // One chunk may have been read before.
      const errors: Error[] = [];
      let chunks = 0;
      for (; errors.length === 0 && chunks < 3; ) {
        const { value } = await reader.read().catch((error: Error) => {
          errors.push(error);
          return { value: undefined };
        });
        if (value === undefined) continue;
        chunks++;
        expect(value.every((byte) => byte === 7)).toBe(true);
      }
      expect(errors[0]).toBeInstanceOf(StateError);
      expect(chunks).toBeLessThanOrEqual(1);
      expect(thrownBy(() => x.toReadable())).toBeInstanceOf(StateError);
      expect((await other.read())[0]).toBe(9);
      await stream.close();
    });

    rule('S934', 'canceling leaks nothing, also while a chunk is being read', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4096, 'u8');
      await device.synchronize();
      await using latch = await hold(target, stream);
      stream.fill(x, 1);
      const reader = x.toReadable({ chunkBytes: 1024 }).getReader();
      const read = reader.read();
      await turn();
      await reader.cancel();
      expect((await read).done).toBe(true);
      // The call did not wait for the device.
      expect(latch.operation.isComplete).toBe(false);
      latch.open();
      expect((await x.read()).every((byte) => byte === 1)).toBe(true);
      await device.synchronize();
      await stream.close();
    });

    rule('S934', 'an abort errors the stream, during reading and before it', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4096, 3, 'u8');
      await device.synchronize();
      const aborter = new AbortController();
      const reader = x.toReadable({ chunkBytes: 1024, signal: aborter.signal }).getReader();
      expect((await reader.read()).value?.[0]).toBe(3);
      await using latch = await hold(target, stream);
      stream.fill(x, 4);
      const reading = x.toReadable({ signal: aborter.signal }).getReader().read();
      await turn();
      const reason = new Error('enough');
      aborter.abort(reason);
      for (const rejected of [reader.read(), reading, x.toReadable({ signal: aborter.signal }).getReader().read()]) {
        expect(await rejectionOf(rejected)).toMatchObject({ name: 'AbortError', cause: reason });
      }
      latch.open();
      await stream.close();
    });

    rule('S935', 'a stream of a poisoned array errors with the failure as cause', async () => {
      const { device } = chapter;
      using x = device.zeros(64, 'u8');
      const launched = device.stream.launch(outside, 64, { x });
      const failure = await rejectionOf(launched.done);
      const error = await rejectionOf(x.toReadable().getReader().read());
      expect(error).toBeInstanceOf(UpstreamError);
      expect((error as UpstreamError).cause).toMatchObject({ message: failure.message });
    });

    rule('S936', 'a bad chunk size or another bad option is refused at the call', () => {
      using x = chapter.device.zeros(10, 'f64');
      for (const chunkBytes of [7, 0, -8, 8.5, Number.NaN, '64', null, 2 ** 53]) {
        expect(
          thrownBy(() => x.toReadable({ chunkBytes: chunkBytes as never })),
          String(chunkBytes),
        ).toBeInstanceOf(ArgumentError);
      }
      expect(thrownBy(() => x.toReadable({ chunkBytes: 7 }))).toMatchObject({ argument: 'chunkBytes', value: 7, limit: 8 });
      for (const opts of [null, 5, { signal: null }, { signal: {} }]) {
        expect(thrownBy(() => x.toReadable(opts as never))).toBeInstanceOf(ArgumentError);
      }
    });
  });

  describe('9 observation: web streams of devices that end', () => {
    const rule = rulesOf(target);

    rule('S935', 'losing the device errors the stream', async () => {
      await withDevice(target, {}, async (device) => {
        const x = device.full(4096, 3, 'u8');
        const reader = x.toReadable({ chunkBytes: 1024 }).getReader();
        expect((await reader.read()).value?.[0]).toBe(3);
        const stream = device.createStream();
        stream.hold(() => new Promise(() => undefined), { timeoutMs: 60_000 });
        stream.fill(x, 4);
        const waiting = x.toReadable().getReader().read();
        await turn();
        const destroyed = device.destroy();
        expect(await rejectionOf(waiting)).toBeInstanceOf(DeviceLostError);
        // Chunks may have been read ahead; after them the stream finds that the device is gone.
        const last = await rejectionOf(reader.read().then(() => reader.read()));
        expect([DeviceLostError, StateError].some((type) => last instanceof type)).toBe(true);
        await destroyed;
      });
    });
  });
});
