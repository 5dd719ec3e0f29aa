// Which memory other processes can open: allocations of their own, each with a handle. The order between processes is their
// own affair; interprocess events give one.
// Thread: owner.
import { StateError } from '../base/errors.js';
import type { Point } from '../timeline/timeline.js';
import type { Storage } from './storage.js';

/** Storages that have a handle, and where they are made. */
const exportable: WeakMap<Storage, Point> = new WeakMap();

export function noteExportable(storage: Storage, madeAt: Point): void {
  exportable.set(storage, madeAt);
}

/** `array.ipcHandle`, of the array of this label, which is the whole of the storage or a view. */
export async function exportMemory(storage: Storage, label: string, isView: boolean): Promise<Uint8Array<ArrayBuffer>> {
  const { core } = storage;
  const madeAt = exportable.get(storage);
  const refuse = (what: string): StateError =>
    new StateError('ERR_MILLRACE_STATE', `Array ${label} of device ${core.name} ${what}.`, { device: core.name });
  if (madeAt === undefined) throw refuse('cannot be opened by other processes: create the array with device.interprocess()');
  if (isView) throw refuse('is a view: get the handle of the array that owns the memory');
  // The memory is there when its record has finished.
  await core.waits.until(madeAt.timeline, madeAt.ticket);
  const over = core.refuseIfOver();
  if (over !== undefined) throw over;
  if (storage.isDisposed) throw refuse('was disposed');
  return core.channel.ask('exportMemory', storage.handle);
}
