// The textures and surfaces among a launch's arguments: checks them, and writes their entries.
// Thread: owner.
import { Access } from '../../protocol/protocol.gen.js';
import { badArgument, belongsTo, show } from '../base/arguments.js';
import type { StreamContext } from '../device/stream-context.js';
import type { Storage } from '../memory/storage.js';
import type { RecordAccesses } from '../ordering/access-tracker.js';
import { Surface, Texture } from './texture.js';

/** What the launch writes them for. */
export interface TextureUse {
  readonly site: StreamContext;
  readonly record: RecordAccesses;
  /** The kernel's name. */
  readonly kernel: string;
}

/** Writes the entries of a parameter: the value, and the memory behind it. Returns the new number of entries. */
export function textureArgs(use: TextureUse, kind: 'texture' | 'surface', value: unknown, path: string, at: number): number {
  const { texture, object } = checkTexture(use, kind, value, path);
  use.site.core.encoder.memoryArg(at++, Access.READ, object.handle, 0);
  return memoryBehind(use, kind, texture, object, path, at);
}

/** The same for a field of a struct, at byte `place` of the parameter. */
export function textureMember(
  use: TextureUse,
  kind: 'texture' | 'surface',
  value: unknown,
  path: string,
  place: number,
  at: number,
): number {
  const { texture, object } = checkTexture(use, kind, value, path);
  use.site.core.encoder.memberArg(at++, Access.READ, place, object.handle, 0);
  return memoryBehind(use, kind, texture, object, path, at);
}

function memoryBehind(
  { site, record }: TextureUse,
  kind: 'texture' | 'surface',
  texture: Texture,
  object: Storage,
  path: string,
  at: number,
): number {
  const { storage, byteOffset, byteLength } = texture;
  const isWrite = kind === 'surface';
  site.core.encoder.variableArg(at++, isWrite ? Access.READ_WRITE : Access.READ, storage.handle);
  record.add(object, 0, 1, false);
  record.add(storage, byteOffset, byteOffset + byteLength, isWrite, true, path);
  return at;
}

function checkTexture(
  { site, kernel }: TextureUse,
  kind: 'texture' | 'surface',
  value: unknown,
  path: string,
): { readonly texture: Texture; readonly object: Storage } {
  const what = `Argument ${path} of kernel ${kernel}`;
  if (value === undefined) throw badArgument(path, value, `${what} is missing.`);
  const texture = value instanceof Surface ? value.texture : value;
  if (!(texture instanceof Texture) || value instanceof Surface !== (kind === 'surface')) {
    const cure = value instanceof Texture ? ': pass its surface' : value instanceof Surface ? ': pass its texture' : '';
    throw badArgument(path, value, `${what} (${show(value)}) is not a ${kind}${cure}.`);
  }
  if (texture.isDisposed) throw texture.disposedError();
  const { core } = site;
  if (texture.core !== core) throw badArgument(path, value, `${what} ${belongsTo(texture.core.name, core.name)}.`, core.name);
  return { texture, object: (value as Texture | Surface).object };
}
