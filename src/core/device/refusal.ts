// Why a record was refused, as the error that the call throws.
// Thread: owner.
import { Status } from '../../protocol/protocol.gen.js';
import { DeviceLostError, InternalError, LimitError, StateError } from '../base/errors.js';
import type { Timeline } from '../timeline/timeline.js';
import { refuseHeld } from '../waits/held.js';
import type { DeviceCore } from './device-core.js';

export function refusalOf(core: DeviceCore, status: Status, stream: string): Error {
  const facts = { device: core.name, stream };
  const { maxPending } = core.channel;
  switch (status) {
    case Status.LIMIT: {
      const message = `The unissued operations of device ${core.name} have reached its limit (${maxPending}).`;
      return new LimitError('ERR_MILLRACE_LIMIT', message, maxPending, () => room(core), facts);
    }
    case Status.DEVICE_LOST:
      core.checkLost();
      return core.lostError ?? new DeviceLostError('ERR_MILLRACE_LOST', `Device ${core.name} is lost.`, 'fault', facts);
    case Status.STATE:
      return new StateError('ERR_MILLRACE_STATE', `Device ${core.name} is closed.`, facts);
    default:
      return new InternalError('ERR_MILLRACE_INTERNAL', `A record was refused (status ${status}).`, facts);
  }
}

/** Resolves when one of the busy streams has finished half of what it has. */
async function room(core: DeviceCore): Promise<void> {
  const busy = [...core.timelines].filter((timeline) => timeline.pending > 0);
  if (busy.length === 0) return;
  const halves = busy.map((timeline) => ({ timeline, ticket: timeline.last - (timeline.pending >> 1) }));
  // What the running function holds does not move.
  const moving = halves.filter(({ timeline, ticket }) => refuseHeld(timeline, ticket) === undefined);
  if (moving.length === 0) throw refuseHeld(busy[0] as Timeline, (busy[0] as Timeline).last) as Error;
  const withdrawals: (() => void)[] = [];
  try {
    await Promise.race(moving.map(({ timeline, ticket }) => core.reach(timeline, ticket, withdrawals)));
  } finally {
    // The others are not waited for: a stuck stream would hold the loop, and collect a waiter for every call.
    for (const withdraw of withdrawals) withdraw();
  }
}
