// The textures and surfaces among a launch's arguments: checks them, and writes their entries.
// Thread: owner.
import { Access } from '../../protocol/protocol.gen.js';
import { badArgument, belongsTo, show } from '../base/arguments.js';
import type { StreamContext } from '../device/stream-context.js';
import { Form, type KernelPlan, type PlanParam } from '../kernels/kernel-plan.js';
import type { RecordAccesses } from '../ordering/access-tracker.js';
import { Surface, Texture } from './texture.js';

/** Writes the entries of a texture or surface: its value, and the memory behind it. Returns the number of entries then. */
export function textureArgs(
  site: StreamContext,
  record: RecordAccesses,
  param: PlanParam,
  plan: KernelPlan,
  value: unknown,
  at: number,
): number {
  const { encoder } = site.core;
  const isSurface = param.form === Form.SURFACE;
  const { texture, object } = checkTexture(value, isSurface, param, plan, site);
  const { storage, byteOffset, byteLength } = texture;
  encoder.memoryArg(at++, Access.READ, object.handle, 0);
  encoder.variableArg(at++, isSurface ? Access.READ_WRITE : Access.READ, storage.handle);
  record.add(object, 0, 1, false);
  record.add(storage, byteOffset, byteOffset + byteLength, isSurface, true);
  return at;
}

function checkTexture(
  value: unknown,
  isSurface: boolean,
  { name }: PlanParam,
  plan: KernelPlan,
  { core }: StreamContext,
): { readonly texture: Texture; readonly object: Texture['object'] } {
  const what = `Argument ${name} of kernel ${plan.name}`;
  if (value === undefined) throw badArgument(name, value, `${what} is missing.`);
  const texture = value instanceof Surface ? value.texture : value;
  if (!(texture instanceof Texture) || value instanceof Surface !== isSurface) {
    const cure = value instanceof Texture ? ': pass its surface' : value instanceof Surface ? ': pass its texture' : '';
    throw badArgument(name, value, `${what} (${show(value)}) is not a ${isSurface ? 'surface' : 'texture'}${cure}.`);
  }
  if (texture.isDisposed) throw texture.disposedError();
  if (texture.core !== core) throw badArgument(name, value, `${what} ${belongsTo(texture.core.name, core.name)}.`, core.name);
  return { texture, object: (value as Texture | Surface).object };
}
