// Does one stream wait for another? Forced by a latch; time decides nothing.
import type { Stream } from 'millrace';
import { hold } from './latch.js';
import type { Target } from './target.js';

/**
 * Fails unless what `second` is given after `join()` waits for what `first` had been given before it, or, with
 * `isOrdered` false, does not.
 */
export async function proveOrder(target: Target, isOrdered: boolean, first: Stream, second: Stream, join: () => void): Promise<void> {
  await using latch = await hold(target, first);
  join();
  const behind = second.record();
  if (!isOrdered) {
    // The latch gives up, and says so, when this waits for it.
    await behind.done;
    return;
  }
  await witness(second);
  if (behind.isComplete) throw new Error(`Stream ${second.label} does not wait for stream ${first.label}.`);
  latch.open();
  await behind.done;
}

/** Resolves when another stream of the device has run a few operations: what could go on meanwhile has had its chance. */
export async function witness({ device }: Pick<Stream, 'device'>): Promise<void> {
  const stream = device.createStream({ ordering: 'explicit' });
  using x = stream.zeros(1, 'i32');
  for (let n = 0; n < 3; n++) await stream.fill(x, n).done;
  await stream.close();
}
