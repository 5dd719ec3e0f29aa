// Holds a stream by a kernel that waits for a word of device memory, so that tests force an order instead of sleeping.
// A latch occupies one of the device's threads: hold one at a time.
import type { Device, Kernel, Operation, Stream } from 'millrace';
import { latchKernel } from './kernels.js';
import type { Target } from './target.js';

const GIVE_UP_SECONDS = 8;

/** Turns (of 1024 looks each) after which a spinning kernel gives up. */
export function turnsOf(target: Target): number {
  return Math.ceil((GIVE_UP_SECONDS * target.supports.spinsPerSecond) / 1024);
}

export interface Latch {
  /** What comes right before the held launch: when it is done, what follows on this stream waits. Its thread may still run something else. */
  readonly reached: Operation;
  /** The held launch. */
  readonly operation: Operation;
  /** Resolves when the held launch runs, and so occupies its thread. */
  runs(): Promise<void>;
  /** Lets the stream go on. */
  open(): void;
  /** Opens it, waits for the stream, and fails if the kernel had given up before. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Holds `stream` from now on. Kernels the test needs meanwhile are built first: loading a module may wait for a
 * running kernel.
 */
export async function hold(target: Target, stream: Stream, ...needed: readonly Kernel[]): Promise<Latch> {
  const device: Device = stream.device;
  await device.compile(latchKernel as Kernel, ...needed);
  const control = device.createStream({ ordering: 'explicit', label: 'latch control' });
  const flag = control.zeros(1, 'i32');
  const expired = control.zeros(2, 'i32');
  const reached = stream.waitStream(control);
  const operation = stream.launch(latchKernel, { grid: 1, block: 1 }, { flag, expired, turns: turnsOf(target) });
  let isOpen = false;
  const open = (): void => {
    if (isOpen) return;
    isOpen = true;
    control.fill(flag, 1);
  };
  return {
    reached,
    operation,
    async runs(): Promise<void> {
      const told = new Int32Array(2);
      while (told[1] === 0) await control.copy(told, expired).done;
    },
    open,
    async [Symbol.asyncDispose](): Promise<void> {
      open();
      await operation.done;
      const [gaveUp] = await expired.read();
      flag[Symbol.dispose]();
      expired[Symbol.dispose]();
      await control.close();
      if (gaveUp !== 0) throw new Error('The latch gave up before it was opened: something that should have gone on waited for it.');
    },
  };
}
