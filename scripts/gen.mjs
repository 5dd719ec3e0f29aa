// Generates every committed output: the record format's two sides, what text for CUDA takes of the shim, and the device
// code of our own kernels. `--check` writes nothing and fails when one differs.
import { join } from 'node:path';
import { root, run } from './tools.mjs';

const args = process.argv.slice(2);
run(process.execPath, [join(root, 'scripts/gen-protocol.mjs'), ...args]);
run(process.execPath, [join(root, 'scripts/gen-ranges.mjs'), ...args]);
run(process.execPath, [join(root, 'native/cuda/kernels/generate.mjs'), ...args]);
