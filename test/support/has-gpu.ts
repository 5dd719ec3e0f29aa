import { existsSync } from 'node:fs';

/** Whether tests run on this machine's GPUs. */
export const HAS_GPU = process.env['MILLRACE_TEST_CUDA'] === '1' || ['/dev/nvidiactl', '/dev/dxg'].some((file) => existsSync(file));
