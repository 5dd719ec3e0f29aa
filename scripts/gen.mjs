// Generates every committed output: both sides of the record format, the shim functions for CUDA C++ source, the list of
// operations that come with the package, and the PTX of the library's own kernels. `--check` writes nothing and fails if one differs.
import { join } from 'node:path';
import { root, run } from './tools.mjs';

const args = process.argv.slice(2);
run(process.execPath, [join(root, 'scripts/gen-protocol.mjs'), ...args]);
run(process.execPath, [join(root, 'scripts/gen-ranges.mjs'), ...args]);
run(process.execPath, [join(root, 'scripts/gen-operations.mjs'), ...args]);
run(process.execPath, [join(root, 'native/cuda/kernels/generate.mjs'), ...args]);
