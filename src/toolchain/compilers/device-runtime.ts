// Finds CUDA's device runtime, libcudadevrt.a, which kernels that launch kernels are linked with. It ships with toolkits and Python
// packages, as compilers do, and must match the compiler's release.
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { UnavailableError } from '../../core/base/errors.js';

const NAME = 'libcudadevrt.a';
/** Library folders of a toolkit. */
const IN_TOOLKIT: readonly string[] = ['lib64', 'lib', 'targets/x86_64-linux/lib', 'targets/sbsa-linux/lib'];

/** The file for the compiler (nvcc, or NVRTC's library) at this path. Throws an UnavailableError that lists the searched locations. */
export function findDeviceRuntime(env: NodeJS.ProcessEnv, compiler: string): string {
  const own = env['MILLRACE_CUDADEVRT'];
  const candidates = own ? [own] : candidatesFor(env, compiler).map((folder) => join(folder, NAME));
  const found = candidates.find((path) => statSync(path, { throwIfNoEntry: false })?.isFile());
  if (found !== undefined) return found;
  const looked = [...new Set(candidates)].join(', ');
  const message = own
    ? `K701: The device runtime that MILLRACE_CUDADEVRT names does not exist: ${own}.`
    : `K701: CUDA's device runtime was not found; kernels that launch kernels need it. The library looked for ${looked}.`;
  throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, [
    'It comes with the CUDA toolkit, and with pip install nvidia-cuda-runtime-cu12 (CUDA 12) or nvidia-cuda-runtime (CUDA 13).',
    `Or name it: MILLRACE_CUDADEVRT=/path/to/${NAME}.`,
  ]);
}

function candidatesFor(env: NodeJS.ProcessEnv, compiler: string): string[] {
  const real = realOf(compiler);
  const folder = dirname(real);
  const roots = [
    dirname(folder),
    env['CUDA_HOME'],
    env['CUDA_PATH'],
    '/usr/local/cuda',
    ...matching('/usr/local', /^cuda-[\d.]+$/).toReversed(),
  ];
  const environments = [env['VIRTUAL_ENV'], env['CONDA_PREFIX']].filter((root) => root !== undefined && root !== '');
  return [
    // NVRTC's folder may belong to a toolkit; its siblings belong to other Python packages.
    folder,
    ...matching(dirname(dirname(folder)), /^(?:cuda_runtime|cu\d+)$/).map((path) => join(path, 'lib')),
    ...roots.flatMap((root) => (root ? IN_TOOLKIT.map((place) => join(root, place)) : [])),
    ...environments
      .flatMap((root) => matching(join(root!, 'lib'), /^python3/))
      .flatMap((path) => matching(join(path, 'site-packages/nvidia'), /^(?:cuda_runtime|cu\d+)$/).map((one) => join(one, 'lib'))),
  ];
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Paths of a folder's entries whose names match. */
function matching(folder: string, pattern: RegExp): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => pattern.test(name))
      .toSorted()
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}
