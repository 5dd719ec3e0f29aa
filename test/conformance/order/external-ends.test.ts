// Chapter 5, last part: functions of foreign work that take time, are given up, or outlive what they use.
import { describe, expect } from 'vitest';
import { AbortError, StateError, UpstreamError, WaitTimeoutError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { type Foreign, foreignOf } from '../../support/foreign.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, rejectionOf, turn } from '../../support/wait.js';

defineChapter((target) => {
  describe('5 waiting: foreign work that takes time', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    let known: Foreign | undefined;
    const foreign = (): Foreign => (known ??= foreignOf(chapter.device));

    rule('S526', 'a promise stops its stream, and no other, until it settles', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using x = stream.zeros(16, 'i32');
      let isCalled = false;
      let open = (): void => undefined;
      const gate = new Promise<void>((resolve) => (open = resolve));
      const external = stream.external({ writes: { x } }, async (raw) => {
        isCalled = true;
        await gate;
        foreign().within(raw, () => foreign().fill(raw, raw.pointers.x, 9, 16));
      });
      using y = stream.zeros(16, 'i32');
      const after = stream.copy(y, x);
      await eventually('the function is called', () => isCalled);
      await other.fill(other.zeros(1), 1).done;
      expect([external.isComplete, after.isComplete]).toEqual([false, false]);
      open();
      expect((await y.read())[15]).toBe(9);
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S526', 'a promise that takes longer than timeoutMs fails the operation, and its stream continues', async () => {
      const stream = chapter.device.createStream();
      using x = stream.zeros(1, 'i32');
      let given: AbortSignal | undefined;
      const slow = stream.external({ writes: { x }, timeoutMs: 30, label: 'slow' }, ({ signal }) => {
        given = signal;
        return new Promise(() => undefined);
      });
      const read = rejectionOf(x.read());
      const error = await rejectionOf(slow.done);
      expect(error).toBeInstanceOf(WaitTimeoutError);
      expect((error as Error).message).toMatch(/^The external function slow of stream .* took/);
      expect(given?.reason).toBe(error);
      expect(((await read) as UpstreamError).cause).toBe(error);
      await stream.fill(x, 1).done;
      await stream.close();
    });

    rule('S526', 'a signal that aborts first prevents the call, and later reaches the function', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.zeros(1, 'i32');
      const reported: unknown[] = [];
      const errors = device.errors$.subscribe({ next: (error) => reported.push(error) });
      const early = new AbortController();
      let calls = 0;
      const held = stream.hold(turn, { timeoutMs: 20_000 });
      const never = stream.external({ writes: { x }, signal: early.signal }, () => calls++);
      early.abort('early');
      expect(await rejectionOf(never.done)).toBeInstanceOf(AbortError);
      await held.done;
      expect(await rejectionOf(x.read())).toBeInstanceOf(UpstreamError);
      expect([calls, reported]).toEqual([0, []]);
      const late = new AbortController();
      let reason: unknown;
      const external = stream.external({ writes: { x }, signal: late.signal }, async ({ signal }) => {
        late.abort('late');
        await turn();
        reason = signal.reason;
      });
      await external.done;
      expect(reason).toBe('late');
      await x.read();
      errors.unsubscribe();
      await stream.close();
    });

    rule('S527', 'a wait for the stream inside the function is refused at once', async () => {
      const stream = chapter.device.createStream();
      let error: unknown;
      await stream.external({}, async () => {
        error = await rejectionOf(stream.synchronize());
      }).done;
      expect(error).toBeInstanceOf(StateError);
      expect((error as Error).message).toContain(`Stream ${stream.label} is held by the function that waits for it`);
      await stream.close();
    });

    rule('S527', 'memory that is disposed while the function runs is freed after it', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      for (let n = 0; n < 20; n++) {
        const x = stream.zeros(4096, 'i32');
        let isCalled = false;
        const external = stream.external({ writes: { x } }, async (raw) => {
          isCalled = true;
          await turn();
          // Memory that takes the place of what was freed would be overwritten.
          foreign().within(raw, () => foreign().fill(raw, raw.pointers.x, -1, 4096));
        });
        x[Symbol.dispose]();
        await eventually('the function is called', () => isCalled);
        using other = device.zeros(4096, 'i32');
        await external.done;
        expect((await other.read()).every((value) => value === 0)).toBe(true);
      }
      await stream.close();
    });
  });

  // It ends devices that others share.
  describe('5 waiting: foreign work at the end of a device', () => {
    const rule = rulesOf(target);

    rule('S527', 'a device that is closed or destroyed while the function runs ends it', async () => {
      for (const end of ['close', 'destroy'] as const) {
        const device = await target.open();
        const { stream } = device;
        const x = stream.zeros(1, 'i32');
        let given: AbortSignal | undefined;
        const ended = stream.external({ writes: { x } }, async ({ signal }) => {
          given = signal;
          if (end === 'destroy') await new Promise((resolve) => signal.addEventListener('abort', resolve));
          else await turn();
        });
        const settled = ended.done.then(
          () => 'finished',
          (error: Error) => error.name,
        );
        await eventually('the function is called', () => given !== undefined);
        await device[end]();
        expect([await settled, given!.aborted]).toEqual(end === 'close' ? ['finished', false] : ['DeviceLostError', true]);
      }
    });
  });
});
