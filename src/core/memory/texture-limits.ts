// The largest textures of a device: hal::DeviceInfo::texture_limits by names.
import type { NativeDeviceInfo } from '../../protocol/reports.js';

/** The extents in shape order, the last one the width. */
type Extents = readonly number[];

export interface TextureLimits {
  /** The limits of textures with one, two and three dimensions. */
  readonly texture: readonly Extents[];
  /** The limits of textures that kernels may write. */
  readonly surface: readonly Extents[];
  /** The limits of textures over linear memory, with one and two dimensions. */
  readonly linear: readonly Extents[];
  /** The most bytes from the start of one row of linear memory to the next. */
  readonly linearPitch: number;
}

/** Undefined for a device without textures. */
export function textureLimits({ textureLimits: limits }: NativeDeviceInfo): TextureLimits | undefined {
  if (limits.length === 0) return undefined;
  const at = (...places: number[]): Extents => places.map((place) => limits[place] as number);
  return {
    texture: [at(0), at(2, 1), at(5, 4, 3)],
    surface: [at(6), at(8, 7), at(11, 10, 9)],
    linear: [at(12), at(14, 13)],
    linearPitch: limits[15] as number,
  };
}
