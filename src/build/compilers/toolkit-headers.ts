// Where CUDA's own headers are, for NVRTC, which brings none: texts that include them (<cooperative_groups.h>) need the
// toolkit that it came with, or another one of this machine.
import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';

/** Every toolkit has it, whoever packed it. */
const SIGN = 'cooperative_groups.h';
/** From the folder of the library: toolkits (`lib64`, `targets/x86_64-linux/lib`), and Python's packages. */
const BESIDE: readonly string[] = ['../include', '../../include', '../../cuda_runtime/include', '../../../include'];

/** The folder, or undefined where there is none. `nvrtc` is the library, as a path or as a name that the loader knows. */
export function toolkitHeaders(nvrtc: string, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const beside = isAbsolute(nvrtc) ? BESIDE.map((way) => join(dirname(nvrtc), way)) : [];
  const homes = [env['CUDA_HOME'], env['CUDA_PATH'], '/usr/local/cuda'].filter((home) => home !== undefined && home !== '');
  return [...beside, ...homes.map((home) => join(home!, 'include'))].find((folder) => existsSync(join(folder, SIGN)));
}

/** Whether a text includes a header of CUDA's that NVRTC looks for in folders. */
export function includesHeaders(source: string): boolean {
  return /^[ \t]*#[ \t]*include[ \t]*<cooperative_groups(?:\.h|\/)/m.test(source);
}
