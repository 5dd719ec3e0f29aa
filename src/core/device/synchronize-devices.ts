// Host waits for everything that was submitted to one or several devices.
// Thread: owner.
import { refuseDeadlockAtEnd } from '../waits/deadlock-check.js';
import { observedAfter } from '../waits/host-observed.js';
import { diagnoseWait } from '../waits/wait-diagnosis.js';
import { checkWaitCall, type WaitOptions, waitWith } from '../waits/wait.js';
import type { DeviceCore } from './device-core.js';

/** Resolves when every stream of these devices has finished what it was given so far. Failed operations do not reject it. */
export async function waitForDevices(cores: readonly DeviceCore[], opts: WaitOptions | undefined): Promise<void> {
  checkWaitCall(opts);
  const points = cores.flatMap((core) => Array.from(core.timelines, (timeline) => ({ core, timeline, ticket: timeline.last })));
  const refused = refuseDeadlockAtEnd(points.map(({ timeline }) => timeline));
  if (refused !== undefined) throw refused;
  const withdrawals: (() => void)[] = [];
  const reached = Promise.all(points.map(({ core, timeline, ticket }) => core.waits.reach(timeline, ticket, withdrawals)));
  const what = `device${cores.length === 1 ? '' : 's'} ${cores.map(({ name }) => name).join(', ')}`;
  const ends = points.map(({ timeline, ticket }) => timeline.at(ticket));
  await observedAfter(
    waitWith(reached, opts, what, withdrawals, () => diagnoseWait(points), cores[0]?.clock),
    ends,
  );
}
