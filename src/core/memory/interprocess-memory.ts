// Memory that other processes can open: separate allocations, each with an interprocess handle. The library orders nothing between
// processes; user code does, with interprocess events.
// Thread: owner.
import { StateError } from '../base/errors.js';
import type { Point } from '../timeline/timeline.js';
import type { Storage } from './storage.js';

/** The storages that have a handle, and the points of their allocation. */
const exportable: WeakMap<Storage, Point> = new WeakMap();

export function noteExportable(storage: Storage, madeAt: Point): void {
  exportable.set(storage, madeAt);
}

/** `array.ipcHandle`. `label` is the label of the array, `isView` whether it is a part of the storage. */
export async function exportMemory(storage: Storage, label: string, isView: boolean): Promise<Uint8Array<ArrayBuffer>> {
  const { core } = storage;
  const madeAt = exportable.get(storage);
  const refuse = (what: string): StateError =>
    new StateError('ERR_MILLRACE_STATE', `Array ${label} of device ${core.name} ${what}.`, { device: core.name });
  if (madeAt === undefined) throw refuse('cannot be opened by other processes: create the array with device.interprocess()');
  if (isView) throw refuse('is a view: get the handle of the array that it is a view of');
  // The memory exists once its record has finished.
  await core.waits.until(madeAt.timeline, madeAt.ticket);
  const over = core.refuseIfOver();
  if (over !== undefined) throw over;
  if (storage.isDisposed) throw refuse('was disposed');
  return core.channel.ask('exportMemory', storage.handle);
}
