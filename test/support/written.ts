// The sources of a TypeScript kernel, as the builder generates them.
import { type SimdMode, written } from '../../src/compiler/codegen/emit-sources.js';
import type { BuildSpec, UnwrittenBuild } from '../../src/core/channel/build-spec.js';
import type { Kernel } from '../../src/core/kernels/kernel.js';

export function writtenOf(made: object, lanes: SimdMode): BuildSpec {
  return written((made as Kernel).build as UnwrittenBuild, lanes);
}
