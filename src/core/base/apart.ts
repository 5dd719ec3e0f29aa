// Devices in processes of their own: what other devices and code of this process cannot do with them.
import { UnsupportedError } from './errors.js';

type Joined = { readonly name: string; readonly channel: { readonly id: number; readonly isApart: boolean } };

/** Throws UnsupportedError if the device is in another process. `what` needs it in this one. */
export function refuseApart({ name, channel }: Joined, what: string): void {
  if (channel.isApart) throw apartError(name, what, `device ${name} has a process of its own`, 'Open it without that option');
}

/** Throws UnsupportedError if these are two devices, and one of them is in another process. */
export function refuseJoining(one: Joined, other: Joined, what: string): void {
  if (one.channel.id === other.channel.id || !(one.channel.isApart || other.channel.isApart)) return;
  const { name } = one.channel.isApart ? one : other;
  const why = `it concerns the devices ${one.name} and ${other.name}, and ${name} has a process of its own`;
  throw apartError(name, what, why, 'Go through memory of the host, as in `stream.copy(y, await x.read())`');
}

/** The same for a wait of one device for `what` of the other. */
export function refuseWait(waiting: Joined, other: Joined, what: string): void {
  if (waiting.channel.id === other.channel.id || !(waiting.channel.isApart || other.channel.isApart)) return;
  const wait = `A wait of device ${waiting.name} for ${what} of device ${other.name}`;
  throw apartError(waiting.name, wait, 'one of them has a process of its own', 'Await that work in JavaScript, then submit what needs it');
}

/** `remedy`: without its period. */
export function apartError(device: string, what: string, why: string, remedy: string): UnsupportedError {
  const message = `${what} is not possible: ${why} (isolation 'process'). ${remedy}.`;
  return new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'isolation', { device });
}
