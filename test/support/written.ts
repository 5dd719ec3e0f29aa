// The texts of a TypeScript kernel, as whoever builds it has them written.
import { type WantedLanes, written } from '../../src/compiler/writing/write.js';
import type { BuildSpec, UnwrittenBuild } from '../../src/core/channel/build.js';
import type { Kernel } from '../../src/core/kernels/kernel.js';

export function writtenOf(made: object, lanes: WantedLanes): BuildSpec {
  return written((made as Kernel).build as UnwrittenBuild, lanes);
}
