// Copies between a texture and an array: checks the ends, and submits the record of a copy within the device.
// Thread: owner.
import { belongsTo, show } from '../base/arguments.js';
import { plainView } from '../base/buffers.js';
import { badCopy } from '../copies/copy-plan.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import { isHostOf } from '../elements/dtype.js';
import type { CopyOptions } from './copy.js';
import { PinnedArray } from './pinned.js';
import { StridedArray } from './strided-array.js';
import { Texture } from './texture.js';

export interface TextureCopy {
  readonly texture: Texture;
  /** The other end: a device array, a pinned array or a typed array with as many values. */
  readonly other: unknown;
  readonly isUpload: boolean;
  readonly label: string | undefined;
}

/** Throws ArgumentError for ends that do not fit, StateError for disposed ones, CaptureError in a capture. */
export function planTextureCopy({ core, timeline }: StreamContext, dst: unknown, src: unknown, opts: CopyOptions): TextureCopy {
  const isUpload = dst instanceof Texture;
  const [texture, other] = (isUpload ? [dst, src] : [src, dst]) as [Texture, unknown];
  const [own, name] = isUpload ? ['dst', 'src'] : ['src', 'dst'];
  texture.checkUsable();
  if (texture.core !== core) throw badCopy(own, texture, `The ${own} of the copy ${belongsTo(texture.core.name, core.name)}.`, core.name);
  if (timeline.recording !== undefined)
    throw timeline.recording.refusal(timeline, 'unsupported-node', 'a graph cannot contain copies to and from textures');
  const isArray = other instanceof StridedArray || other instanceof PinnedArray;
  if (!isArray && !isHostOf(other, texture.dtype)) {
    const message = `The ${name} of the copy (${show(other)}) is neither a device array, a pinned array nor a typed array of ${texture.dtype}.`;
    throw badCopy(name, other, message, texture.dtype);
  }
  if (isArray && other.isDisposed) throw other.disposedError();
  if (isArray && other.dtype !== texture.dtype)
    throw badCopy(
      name,
      other,
      `The ${name} of the copy has dtype ${other.dtype}; the ${texture.label} has ${texture.dtype}.`,
      texture.dtype,
    );
  const { length } = isArray ? other : plainView(other);
  if (length !== texture.length) {
    const message = `The ${name} of the copy has ${length} values; the ${texture.label} has ${texture.length}.`;
    throw badCopy(name, other, message, texture.length);
  }
  return { texture, other, isUpload, label: opts.label };
}

/** Whether one record copies the elements. */
export function isDirect(copy: TextureCopy, core: DeviceCore): copy is TextureCopy & { readonly other: StridedArray } {
  const { other } = copy;
  return other instanceof StridedArray && other.core === core && other.isContiguous;
}

/** Submits the copy of all elements between a texture and a contiguous array of its device. Returns the ticket. */
export function submitArrayCopy(
  site: StreamContext,
  { storage, byteLength, plan }: Texture,
  array: StridedArray,
  isUpload: boolean,
  label: string | undefined,
): number {
  const { core, timeline } = site;
  const record = core.tracker.begin(site);
  record.add(array.storage, array.byteOffset, array.byteOffset + array.byteLength, !isUpload);
  record.add(storage, 0, byteLength, isUpload);
  return record.submit('copy', label, () =>
    core.encoder.textures.copy(
      timeline.slot,
      storage.handle,
      array.storage.handle,
      array.storage.base + array.byteOffset,
      plan.layout,
      isUpload,
    ),
  );
}
