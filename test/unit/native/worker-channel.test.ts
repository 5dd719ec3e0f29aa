// The owner's side of a device's worker, on a worker that ends when the test says so.
import { EventEmitter } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { DeviceLostError } from '../../../src/core/base/errors.js';
import type { Binding } from '../../../src/native/binding.js';
import type { Encoder } from '../../../src/protocol/encoder.js';
import type { NativeDeviceInfo } from '../../../src/protocol/reports.js';
import { workerLink } from '../../../src/workers/control-link.js';
import { WorkerChannel } from '../../../src/workers/worker-channel.js';

class EndingWorker extends EventEmitter {
  readonly heard: unknown[] = [];
  postMessage(message: unknown): void {
    this.heard.push(message);
  }
  ref(): void {}
  unref(): void {}
}

function channelOn(worker: EndingWorker): WorkerChannel {
  const binding = { attach: () => undefined, detach: () => undefined } as unknown as Binding;
  const opened = { id: 1, backend: 'cpu', info: { ordinal: 0 } as NativeDeviceInfo, maxPending: 1 } as const;
  const buffers = { timeline: new SharedArrayBuffer(8), arena: new SharedArrayBuffer(8) };
  return new WorkerChannel(binding, workerLink(worker as unknown as Worker), {} as Encoder, { ...opened, ...buffers } as never);
}

describe('what is asked of a worker', () => {
  const asked: readonly [string, (channel: WorkerChannel) => Promise<unknown>][] = [
    ['collect', (channel) => channel.collect(1)],
    ['unregister', (channel) => channel.unregister(1)],
    ['build', (channel) => channel.build(1, {} as BuildSpec)],
    ['ask', (channel) => channel.ask('poolStats')],
  ];
  for (const [name, ask] of asked) {
    test(`${name} is rejected when it ends before the answer, and when it has ended`, async () => {
      const worker = new EndingWorker();
      const channel = channelOn(worker);
      const before = ask(channel);
      worker.emit('exit', 1);
      await expect(before).rejects.toThrow(DeviceLostError);
      const unheard = worker.heard.length;
      await expect(ask(channel)).rejects.toThrow(DeviceLostError);
      expect(worker.heard).toHaveLength(unheard);
    }, 2000);
  }
});
