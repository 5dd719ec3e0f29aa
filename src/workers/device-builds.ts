// What a device's worker loads when it builds for the first time: the compiler of kernels. Commands of `npx millrace` load it, too.
// Thread: control.
import { faultSource } from '../toolchain/compilers/race-source.js';
import { PrebuiltImages } from '../toolchain/images/prebuilt-images.js';
import { type BuildTarget, KernelBuilder } from '../toolchain/images/builder.js';

export { buildAhead } from '../toolchain/images/build-ahead.js';
export { cacheContents, cleanCache } from '../toolchain/images/cache-contents.js';
export { imageTargets } from '../toolchain/base/image-targets.js';

export interface DeviceBuilds {
  readonly builder: KernelBuilder;
  readonly faultSource: typeof faultSource;
}

/** Throws for a folder whose images the device could not load. */
export function checkImages(folder: string): void {
  void new PrebuiltImages(folder);
}

export function deviceBuilds(target: BuildTarget): DeviceBuilds {
  return { builder: new KernelBuilder(target), faultSource };
}
