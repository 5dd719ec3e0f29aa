// Devices in processes of their own: what other devices and code of this process cannot do with them.
import { UnsupportedError } from '../base/errors.js';
import type { Channel } from '../channel/channel.js';

/** Throws UnsupportedError if the device is in another process. `what` needs it in this one. */
export function refuseApart({ name, channel }: { readonly name: string; readonly channel: Pick<Channel, 'isApart'> }, what: string): void {
  if (channel.isApart) throw apartError(name, what, `device ${name} has a process of its own`);
}

type Joined = { readonly name: string; readonly channel: Pick<Channel, 'id' | 'isApart'> };

/** Throws UnsupportedError if these are two devices, and one of them is in another process. */
export function refuseJoining(one: Joined, other: Joined, what: string): void {
  if (one.channel.id === other.channel.id || !(one.channel.isApart || other.channel.isApart)) return;
  const { name } = one.channel.isApart ? one : other;
  throw apartError(name, what, `it concerns the devices ${one.name} and ${other.name}, and ${name} has a process of its own`);
}

function apartError(device: string, what: string, why: string): UnsupportedError {
  const message = `${what} is not possible: ${why} (isolation 'process').`;
  return new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'isolation', { device });
}
