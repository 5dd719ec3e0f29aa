// What a device's worker loads when it builds for the first time: the compiler of kernels.
// Thread: control.
import { faultSource } from '../toolchain/compilers/race-source.js';
import { type BuildTarget, KernelBuilder } from '../toolchain/images/builder.js';

export interface DeviceBuilds {
  readonly builder: KernelBuilder;
  readonly faultSource: typeof faultSource;
}

export function deviceBuilds(target: BuildTarget): DeviceBuilds {
  return { builder: new KernelBuilder(target), faultSource };
}
