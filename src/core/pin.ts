// Page-locking memory that already exists.
// Thread: owner.
import type { DeviceCore } from './device-core.js';
import { InternalError } from './errors.js';
import type { PinnedArray } from './pinned.js';

export function pinExisting(_core: DeviceCore, _data: unknown): PinnedArray {
  throw new InternalError('ERR_MILLRACE_INTERNAL', 'pin is not built yet.');
}
