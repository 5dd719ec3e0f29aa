// `device.inspect()`.
// Thread: owner.
import type { StreamSnapshot } from '../base/snapshots.js';
import type { DeviceCore, DeviceState } from '../device/device-core.js';
import type { Timeline } from '../timeline/timeline.js';
import { diagnoseWait, lookAt } from '../waits/wait-diagnosis.js';
import type { DeviceName } from './device-info.js';

/** What `device.inspect()` returns: plain data. */
export interface DeviceSnapshot {
  /** The device's id, for example 'cuda:0'. */
  readonly device: DeviceName;
  /** 'open', 'closing', 'closed' or 'lost', as `device.state`. */
  readonly state: DeviceState;
  /** The streams of the device: what each has pending, and what it waits for. */
  readonly streams: readonly StreamSnapshot[];
}

/** `state`: that of the Device, which may be closed while others have the device open. */
export function inspectDevice(
  device: DeviceName,
  state: DeviceState,
  { channel }: DeviceCore,
  timelines: Iterable<Timeline>,
): DeviceSnapshot {
  const isOver = state === 'closed' || state === 'lost';
  return { device, state, streams: lookAt(timelines, isOver ? channel : undefined) };
}

/** What a stream waits for, in words. */
export interface StreamWait {
  /** The label of the stream. */
  readonly stream: string;
  /** For example 'stream download waits for an array of stream compute, at launch blur'. */
  readonly sentence: string;
}

/** Of streams that have pending operations. */
export function waitsOf(timelines: Iterable<Timeline>): readonly StreamWait[] {
  return [...timelines]
    .filter(({ pending }) => pending > 0)
    .map((timeline) => ({ stream: timeline.label, sentence: diagnoseWait([timeline.here()]).message }))
    .filter(({ sentence }) => sentence !== '');
}
