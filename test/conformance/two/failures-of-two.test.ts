// Chapter 6, rules about two devices: which arrays of the other device a failure poisons, and which not.
import { describe, expect } from 'vitest';
import { BoundsError, f32, i32, input, kernel, output, UpstreamError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { runChild } from '../../support/child.js';
import { chapterDevices, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

const shifted = kernel('shifted_away', { x: input(f32), y: output(f32), by: i32 }, ({ x, y, by }, { i }) => {
  y[i] = x[i + by]!;
});

defineChapter((target) => {
  describe('6 failures: between two devices', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    rule('S611', 'a copy from a poisoned array poisons its destination, with the first failure as cause', async () => {
      const { device, other } = chapter;
      using x = device.ones(4);
      using y = device.zeros(4);
      using there = other.zeros(4);
      using further = other.zeros(4);
      const first = await rejectionOf(device.stream.launch(shifted, 4, { x, y, by: 4 }).done);
      expect(first).toBeInstanceOf(BoundsError);
      const failures = [
        await rejectionOf(other.stream.copy(there, y).done),
        await rejectionOf(there.read()),
        await rejectionOf(other.stream.copy(further, there).done),
        await rejectionOf(further.read()),
      ];
      for (const error of failures) {
        expect(error).toBeInstanceOf(UpstreamError);
        expect((error as UpstreamError).cause).toBeInstanceOf(BoundsError);
      }
      other.stream.fill(there, 3);
      expect(await there.read()).toEqual(new Float32Array([3, 3, 3, 3]));
      device.stream.copy(y, there);
      expect(await y.read()).toEqual(new Float32Array([3, 3, 3, 3]));
    });

    rule('S611', 'a kernel does not run on a poisoned copy, and poisons its outputs', async () => {
      const { device, other } = chapter;
      using x = device.ones(4);
      using y = device.zeros(4);
      using there = other.zeros(4);
      using part = other.zeros([4, 2]);
      using result = other.zeros(4);
      const first = await rejectionOf(device.stream.launch(shifted, 4, { x, y, by: 4 }).done);
      expect(first).toBeInstanceOf(BoundsError);
      for (const stream of [device.stream, other.stream]) {
        stream.copy(there, y);
        const launched = other.stream.launch(shifted, 4, { x: there, y: result, by: 0 });
        stream.copy(part.view(undefined, 1), y);
        const gathered = other.stream.launch(shifted, 4, { x: part.reshape(8), y: result, by: 0 });
        for (const operation of [launched, gathered, other.stream.copy(there, result)]) {
          const error = await rejectionOf(operation.done);
          expect(error).toBeInstanceOf(UpstreamError);
          expect((error as UpstreamError).cause).toBe(((await rejectionOf(there.read())) as UpstreamError).cause);
          expect((error as UpstreamError).cause).toBeInstanceOf(BoundsError);
        }
        for (const array of [there, part, result]) other.stream.fill(array, 5);
        await other.stream.launch(shifted, 4, { x: there, y: result, by: 0 }).done;
        expect(await result.read()).toEqual(new Float32Array([5, 5, 5, 5]));
      }
    });

    rule('S608', 'a failure whose consequence on the other device was read is not told again', async () => {
      const { device, other } = chapter;
      const seen: string[] = [];
      const subscriptions = [device, other].map((each) => each.errors$.subscribe(({ message }) => void seen.push(message)));
      let release = (): void => undefined;
      const released = new Promise<void>((resolve) => (release = resolve));
      using x = device.ones(4);
      using y = device.zeros(4);
      using there = other.zeros(4);
      device.stream.launch(shifted, 4, { x, y, by: 4 });
      const further = other.createStream();
      other.stream.hold(() => released, { timeoutMs: 30_000 });
      other.stream.copy(there, y);
      const reading = rejectionOf(further.copy(other.zeros(4), there).done);
      // Longer than the devices' looks for failures are apart.
      await new Promise((resolve) => setTimeout(resolve, 150));
      release();
      expect(await reading).toBeInstanceOf(UpstreamError);
      await Promise.all([device.synchronize(), other.synchronize()]);
      await new Promise((resolve) => setTimeout(resolve, 150));
      expect(seen).toEqual([]);
      for (const subscription of subscriptions) subscription.unsubscribe();
      await further.close();
    });

    rule('S606', 'a copy from the other device clears a poisoned array that it overwrites whole, in one piece or several', async () => {
      const { device, other } = chapter;
      for (const count of [4, 10 * 2 ** 20]) {
        using x = device.ones(4);
        using y = device.zeros(count);
        using there = other.zeros(count);
        expect(await rejectionOf(device.stream.launch(shifted, 4, { x, y, by: 4 }).done)).toBeInstanceOf(BoundsError);
        other.stream.copy(there, y);
        expect(await rejectionOf(there.read())).toBeInstanceOf(UpstreamError);
        device.stream.fill(y, 2);
        other.stream.copy(there, y, { count: count - 1 });
        expect(await rejectionOf(there.read())).toBeInstanceOf(UpstreamError);
        other.stream.copy(there, y);
        expect((await there.read()).every((value) => value === 2)).toBe(true);
      }
    });

    rule('S612', 'a failure affects neither the other device nor its waiting streams', async () => {
      const { device, other } = chapter;
      const waiting = other.createStream();
      using x = device.ones(4);
      using y = device.zeros(4);
      using there = other.zeros(4);
      const failed = rejectionOf(device.stream.launch(shifted, 4, { x, y, by: 7 }).done);
      waiting.waitStream(device.stream);
      await waiting.fill(there, 9).done;
      expect(await failed).toBeInstanceOf(BoundsError);
      expect([device.state, other.state]).toEqual(['open', 'open']);
      expect(await there.read()).toEqual(new Float32Array([9, 9, 9, 9]));
      await waiting.close();
    });

    rule('S613', 'an operation that uses a lost device rejects with that device and its reason, and its own device continues', async () => {
      const second = target.spec.startsWith('cuda') ? 'cuda:1' : 'cpu:1';
      const lines = `import { openDevice } from 'millrace';
        const device = await openDevice(${JSON.stringify(target.spec)});
        const other = await openDevice('${second}');
        const stream = device.createStream();
        const x = stream.zeros(4), y = other.zeros(4);
        await Promise.all([device.synchronize(), other.synchronize()]);
        let release;
        stream.hold(() => new Promise((resolve) => (release = resolve)), { timeoutMs: 60000 });
        const copy = stream.copy(x, y).done.catch((error) => error);
        await other.destroy('enough');
        while (release === undefined) await new Promise((resolve) => setImmediate(resolve));
        release();
        const { name, reason, device: lost, cause } = await copy;
        await device.stream.fill(device.zeros(1), 1).done;
        console.log(JSON.stringify([name, reason, lost, cause?.name, device.state]));
        process.exit();`;
      const ended = await runChild(lines, { MILLRACE_CPU_DEVICES: '2' });
      expect(ended.stderr).toBe('');
      expect(JSON.parse(ended.stdout)).toEqual(['DeviceLostError', 'closed', second, 'DeviceLostError', 'open']);
    });
  });
});
