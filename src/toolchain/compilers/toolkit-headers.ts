// Where CUDA's own headers are, for NVRTC, which brings none: texts that include them (<cooperative_groups.h>) need the
// toolkit that it came with, or another one of this machine.
import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';

/** Every toolkit has it, whoever packed it. */
const SIGN = 'cooperative_groups.h';
/** From the folder of the library: toolkits (`lib64`, `targets/x86_64-linux/lib`), and Python's packages. */
const BESIDE: readonly string[] = ['../include', '../../include', '../../cuda_runtime/include', '../../../include'];

/** The folders, none where they are not found. `nvrtc` is the library, as a path or as a name that the loader knows. */
export function toolkitHeaders(nvrtc: string, env: NodeJS.ProcessEnv = process.env): string[] {
  const beside = isAbsolute(nvrtc) ? BESIDE.map((way) => join(dirname(nvrtc), way)) : [];
  const homes = [env['CUDA_HOME'], env['CUDA_PATH'], '/usr/local/cuda'].filter((home) => home !== undefined && home !== '');
  const found = [...beside, ...homes.map((home) => join(home!, 'include'))].find((folder) => existsSync(join(folder, SIGN)));
  // Since CUDA 13 the C++ library, on which they stand, has a folder of its own.
  return found === undefined ? [] : [found, join(found, 'cccl')].filter((folder) => existsSync(folder));
}

/** Whether a text includes a header of CUDA's that NVRTC looks for in folders. */
export function includesHeaders(source: string): boolean {
  return /^[ \t]*#[ \t]*include[ \t]*<cooperative_groups(?:\.h|\/)/m.test(source);
}
