// Where the fake CUDA driver is. It is part of the native tests.
import { existsSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');
const BUILT = 'build/cmake/test/native/libfake_cuda.so';

/** The built library, if there is one. MILLRACE_FAKE_CUDA_LIBRARY names another place. */
export const FAKE_DRIVER: string | undefined = [process.env['MILLRACE_FAKE_CUDA_LIBRARY'], path.join(ROOT, BUILT)].find(
  (file) => file !== undefined && existsSync(file),
);
export const FAKE_DRIVER_MISSING = `libfake_cuda.so was not built (looked for ${BUILT}); npm run test:native builds it.`;
