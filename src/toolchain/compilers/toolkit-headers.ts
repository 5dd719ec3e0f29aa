// Finds CUDA's headers for NVRTC, which ships without them: source that includes headers that native/kernel_headers does not have
// (<cooperative_groups.h>, <cuda_fp16.h>) needs the toolkit that NVRTC belongs to, or another one of this machine.
import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';

/** A header that every toolkit has, however it was packaged. */
const SIGN = 'cooperative_groups.h';
/** Include folders relative to the library's folder: toolkits (`lib64`, `targets/x86_64-linux/lib`), and Python packages. */
const BESIDE: readonly string[] = ['../include', '../../include', '../../cuda_runtime/include', '../../../include'];

/** The include folders; empty when none are found. `nvrtc` is the library's path, or a name that the loader resolves. */
export function toolkitHeaders(nvrtc: string, env: NodeJS.ProcessEnv = process.env): string[] {
  const beside = isAbsolute(nvrtc) ? BESIDE.map((way) => join(dirname(nvrtc), way)) : [];
  const homes = [env['CUDA_HOME'], env['CUDA_PATH'], '/usr/local/cuda'].filter((home) => home !== undefined && home !== '');
  const found = [...beside, ...homes.map((home) => join(home!, 'include'))].find((folder) => existsSync(join(folder, SIGN)));
  // Since CUDA 13, the C++ library that these headers include has its own folder.
  return found === undefined ? [] : [found, join(found, 'cccl')].filter((folder) => existsSync(folder));
}
