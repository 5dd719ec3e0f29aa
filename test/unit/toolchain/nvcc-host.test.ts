// nvcc runs a C++ compiler of its own choice, and NVRTC comes in releases.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { UnavailableError } from '../../../src/core/base/errors.js';
import { nvrtcHelp } from '../../../src/toolchain/compilers/toolchain.js';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import { specOf } from './run-image.js';

const scratch = mkdtempSync(join(tmpdir(), 'millrace-nvcc-host-'));
const path = join(scratch, 'nvcc');
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const unexpected = (): never => {
  throw new Error('It was built.');
};

test('nvcc without a C++ compiler of its own is no error of the source, and NVRTC is recommended in the release of the driver', async () => {
  const says = 'echo "gcc: No such file or directory" >&2; echo "nvcc fatal : Failed to preprocess host compiler properties." >&2; exit 1';
  writeFileSync(path, `#!/bin/sh\n[ "$1" = --version ] && echo "release 12.4, V12.4.1" && exit\n${says}\n`, { mode: 0o755 });
  const cuda = new KernelBuilder({ backend: 'cuda', computeCapability: [9, 0] }, { MILLRACE_CACHE: 'off', MILLRACE_NVCC: path });
  const error = await cuda
    .build(specOf('extern "C" __global__ void k() {}', 'k'))
    .then(unexpected, (reason: unknown) => reason as UnavailableError);
  expect(error).toBeInstanceOf(UnavailableError);
  expect(error.message).toMatch(/^K707: .* was not built by nvcc 12.4.1: gcc: No such file or directory\.\n/);
  expect(error.help.join()).toContain(`apt-get install g++. Or name one: MILLRACE_NVCC="${path} -ccbin`);
  expect(nvrtcHelp({}, 12)).toContain('pip install nvidia-cuda-nvrtc-cu12');
  expect(nvrtcHelp({}, 13)).toMatch(/"nvidia-cuda-nvrtc==13\.\*" in .* cuda-nvrtc-13-/);
  expect(nvrtcHelp({}, undefined)).toContain('CUDA 12');
  expect(nvrtcHelp({ MILLRACE_NVRTC: '/a.so' }, 13)).toMatch(/unset it: \/a\.so cannot/);
});
