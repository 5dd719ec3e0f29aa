// The code that builds kernels. The package has it in a CommonJS file, which a device's worker shares.
import type * as builder from '../workers/device-builds.js';

type Builds = typeof builder;

export async function builds(): Promise<Builds> {
  const loaded: Builds & { readonly default?: Builds } = await import('../workers/device-builds.js');
  return loaded.default ?? loaded;
}
