// Host waits for all that devices were given.
// Thread: owner.
import { refuseDeadlockAtEnd } from '../waits/deadlock-check.js';
import { noteSeen } from '../waits/host-observed.js';
import { diagnoseWait } from '../waits/wait-diagnosis.js';
import { checkWaitOptions, type WaitOptions, waitWith } from '../waits/wait.js';
import type { DeviceCore } from './device-core.js';

/** Resolves when every stream of these devices has reached what it was given so far. Failures are left to their operations. */
export async function waitForDevices(cores: readonly DeviceCore[], opts: WaitOptions | undefined): Promise<void> {
  checkWaitOptions(opts);
  const points = cores.flatMap((core) => Array.from(core.timelines, (timeline) => ({ core, timeline, ticket: timeline.last })));
  const refused = refuseDeadlockAtEnd(points.map(({ timeline }) => timeline));
  if (refused !== undefined) throw refused;
  const withdrawals: (() => void)[] = [];
  const reached = Promise.all(points.map(({ core, timeline, ticket }) => core.waits.reach(timeline, ticket, withdrawals)));
  const what = `device${cores.length === 1 ? '' : 's'} ${cores.map(({ name }) => name).join(', ')}`;
  const ends = points.map(({ timeline, ticket }) => timeline.at(ticket));
  await noteSeen(
    waitWith(reached, opts, what, withdrawals, () => diagnoseWait(points)),
    ends,
  );
}
