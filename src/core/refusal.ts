// Why a record was refused, as the error that the call throws.
// Thread: owner.
import { Status } from '../protocol/protocol.gen.js';
import type { DeviceCore } from './device-core.js';
import { DeviceLostError, InternalError, LimitError, StateError } from './errors.js';

/** `room` resolves when there is room for another record. */
export function refusalOf(core: DeviceCore, status: Status, stream: string, room: () => Promise<void>): Error {
  const facts = { device: core.name, stream };
  const { maxPending } = core.channel;
  switch (status) {
    case Status.LIMIT: {
      const message = `The unissued operations of device ${core.name} have reached its limit (${maxPending}).`;
      return new LimitError('ERR_MILLRACE_LIMIT', message, maxPending, room, facts);
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
