// Host waits for everything that was submitted to one or several devices.
// Thread: owner.
import { LimitError } from '../base/errors.js';
import { setImmediate } from '../base/timers.js';
import type { Timeline } from '../timeline/timeline.js';
import { refuseDeadlockAtEnd } from '../waits/deadlock-check.js';
import { observedAfter } from '../waits/host-observed.js';
import { diagnoseWait } from '../waits/wait-diagnosis.js';
import { checkWaitCall, type WaitOptions, waitWith } from '../waits/wait.js';
import type { DeviceCore } from './device-core.js';

interface Awaited {
  readonly core: DeviceCore;
  readonly timeline: Timeline;
  readonly ticket: number;
}

/**
 * Resolves when every stream of these devices has finished what this thread gave it so far. Failed operations do not reject it. `isWhole`:
 * also what the other threads that share the devices, and other code on wrapped streams, have given to streams so far.
 */
export async function waitForDevices(cores: readonly DeviceCore[], opts: WaitOptions | undefined, isWhole: boolean = false): Promise<void> {
  checkWaitCall(opts);
  const here = (core: DeviceCore): Awaited[] => Array.from(core.timelines, (timeline) => ({ core, timeline, ticket: timeline.last }));
  const points = cores.flatMap(here);
  const refused = refuseDeadlockAtEnd(points.map(({ timeline }) => timeline));
  if (refused !== undefined) throw refused;
  const ends = points.map(({ timeline, ticket }) => timeline.at(ticket));
  const withdrawals: (() => void)[] = [];
  const reach = ({ core, timeline, ticket }: Awaited): Promise<void> => core.waits.reach(timeline, ticket, withdrawals);
  const others = isWhole ? cores.flatMap((core) => waitsForOthers(core)) : [];
  const add = async (submit: () => Awaited): Promise<void> => {
    const point = await submitted(submit);
    points.push(point);
    await reach(point);
  };
  const reached = Promise.all([...points.map(reach), ...others.map(add)]);
  const what = `device${cores.length === 1 ? '' : 's'} ${cores.map(({ name }) => name).join(', ')}`;
  await observedAfter(
    waitWith(reached, opts, what, withdrawals, () => diagnoseWait(points), cores[0]?.clock),
    ends,
  );
}

/** A record behind the work that other code has submitted to a wrapped stream. */
export function foreignWork(core: DeviceCore, timeline: Timeline): Awaited {
  return { core, timeline, ticket: timeline.isEnding ? timeline.last : core.submit(timeline, core.encoder.nop(timeline.slot)) };
}

/** Submits the record that a host wait needs, as soon as there is room for it. */
export async function submitted(submit: () => Awaited): Promise<Awaited> {
  for (;;) {
    try {
      return submit();
    } catch (error) {
      if (!(error instanceof LimitError)) throw error;
      await error.retryAfter;
      // The streams of this thread may have nothing to wait for.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** The records that wait for what is pending now on streams of other threads and on wrapped streams. */
function waitsForOthers(core: DeviceCore): (() => Awaited)[] {
  const own = new Set(Array.from(core.timelines, ({ slot }) => slot));
  const records: (() => Awaited)[] = [];
  for (const timeline of core.timelines) if (timeline.isForeign) records.push(() => foreignWork(core, timeline));
  const pending = core.channel.pendingPoints();
  for (let at = 0; at < pending.length; at += 2) {
    const [slot, ticket] = pending.slice(at, at + 2) as [number, number];
    if (own.has(slot)) continue;
    records.push(() => {
      const timeline = core.internalStreams['other-threads'].take();
      return { core, timeline, ticket: core.submit(timeline, core.encoder.wait(timeline.slot, core.channel.id, slot, ticket)) };
    });
  }
  return records;
}
