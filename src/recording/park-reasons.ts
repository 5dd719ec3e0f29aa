// The words of `device.inspect()` for the reasons of the device.
import { ParkReason } from '../protocol/protocol.gen.js';
import type { Parked } from './recorded.js';

const REASONS: Readonly<Record<number, Parked['reason']>> = {
  [ParkReason.POINT]: 'stream',
  [ParkReason.BUILD]: 'compile',
  [ParkReason.PIN]: 'pinning',
  [ParkReason.WINDOW]: 'window',
  [ParkReason.MEMORY]: 'memory',
  [ParkReason.DRAIN]: 'stream',
  [ParkReason.HOLD]: 'host',
  [ParkReason.PEER]: 'peer',
  [ParkReason.BLOCKING_CALL]: 'transfer',
};

export function reasonOf(code: number): Parked['reason'] {
  return REASONS[code] ?? 'stream';
}
