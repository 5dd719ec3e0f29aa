// Opens communicators.
// Thread: owner.
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import { UnsupportedError } from '../core/base/errors.js';
import type { Device } from '../core/api/device.js';
import { checkOpenDevice, type DeviceLike } from '../core/api/open-devices.js';
import { refuseApart } from '../core/base/apart.js';
import { LocalCommunicator } from './local-communicator.js';
import { NcclCommunicator } from './nccl-communicator.js';
import type { Communicator } from './types.js';

/**
 * Joins the open devices of this thread, one for each rank, to a communicator: `ncclCommInitAll`, `nccl4py`'s `Communicator.init_all`. GPUs are
 * joined by NCCL, on threads of their own; CPU devices by copies, as a reference for tests. One device is a communicator too, so that a program
 * runs unchanged on a machine that has one. Rejects with ArgumentError for no device and for one that is there twice, StateError for a closed one, UnsupportedError for devices of several backends and for one in a process of its own,
 * UnavailableError if NCCL is not installed, and CollectiveError with what NCCL answers.
 * @example
 * const group = await openCommunicator(['cuda:0', 'cuda:1']);
 * const { arrays } = group.allReduce([x, y]); // of x + y, on both devices
 */
export async function openCommunicator(devices: readonly DeviceLike[]): Promise<Communicator> {
  if (arguments.length > 1) refuseSurplus('openCommunicator', arguments, 1);
  if (!Array.isArray(devices) || devices.length === 0)
    throw badArgument('devices', devices, `The devices (${show(devices)}) are not a list of at least one.`, 1);
  const list = (devices as readonly unknown[]).map((device) => checkOpenDevice('devices', device));
  const twice = list.find(({ info }, at) => list.findIndex((other) => other.info.id === info.id) < at);
  if (twice !== undefined)
    throw badArgument('devices', devices, `The device ${twice.info.id} is in the list twice: each rank has its own.`);
  const [{ info, core }] = list as [Device];
  const other = list.find((device) => device.info.backend !== info.backend);
  if (other !== undefined) {
    const message = `A communicator has devices of one backend, and ${info.id} and ${other.info.id} are of two.`;
    throw new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'collectives', { device: other.info.id });
  }
  if (info.backend === 'cpu') return new LocalCommunicator(list);
  for (const device of list) refuseApart(device.core, 'A communicator');
  const { communicators } = core.channel;
  if (communicators === undefined) {
    const message = `Device ${info.id} has no library of collectives.`;
    throw new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'collectives', { device: info.id });
  }
  const ordinals = list.map((device) => device.core.info.ordinal);
  const number = await communicators.open({ ordinals, ranks: [...list.keys()], size: list.length });
  return new NcclCommunicator(list, communicators, number);
}
