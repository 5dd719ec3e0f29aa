// The code that builds kernels. The package has it in a CommonJS file, which a device's worker shares.
type Builds = typeof import('../workers/device-builds.js');

export async function builds(): Promise<Builds> {
  const loaded: Builds & { readonly default?: Builds } = await import('../workers/device-builds.js');
  return loaded.default ?? loaded;
}
