// Chapter 8: kernels that `millrace build` has built for this device, in a process that has no compiler.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { arch, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, vi } from 'vitest';
import { openDevice } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { rulesOf } from '../../support/rule.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const MAIN = path.join(ROOT, 'dist/cli/main.js');
const run = promisify(execFile);

const KERNELS = `import { cudaKernel, cudaModule, f32, inout, kernel } from '${pathToFileURL(path.join(ROOT, 'dist/index.js')).href}';
export const plusOne = kernel('plusOne', { x: inout(f32) }, ({ x }, { i }) => { x[i] = x[i] + 1; });
export const twice = cudaKernel('twice', { x: inout(f32) }, 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }');
const module = cudaModule(\`__device__ float factor = 3;
namespace of { __global__ void scale(float* x) { x[threadIdx.x] *= factor; } }\`);
export const scale = module.kernel('of::scale', { x: inout(f32) });
`;
const LAUNCHES = `import { kernel, f32, inout, openDevice } from '${pathToFileURL(path.join(ROOT, 'dist/index.js')).href}';
import { plusOne, scale, twice } from './kernels.mjs';
const [spec, images] = process.argv.slice(2);
const device = await openDevice(spec, { images });
const x = device.from(new Float32Array([1, 2, 3, 4]));
for (const one of [plusOne, twice, scale]) device.stream.launch(one, { grid: 1, block: 4 }, { x });
const values = [...(await x.read())];
const other = kernel('other', { x: inout(f32) }, ({ x }, { i }) => { x[i] = 7; });
const error = await device.compile(other).then(() => 'none', ({ name, message }) => name + ' ' + message);
console.log(JSON.stringify({ values, error }));
await device.close();
`;

defineChapter((target) => {
  describe('8 kernels that were built ahead of time', () => {
    const rule = rulesOf(target);
    const folder = mkdtempSync(path.join(tmpdir(), 'millrace-images-'));
    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    rule('S819', 'a device loads kernels from a folder, and asks no compiler', async () => {
      const device = await target.open();
      const { id, computeCapability } = device.info;
      await device.close();
      writeFileSync(path.join(folder, 'kernels.mjs'), KERNELS);
      writeFileSync(path.join(folder, 'launches.mjs'), LAUNCHES);
      const images = path.join(folder, 'images');
      const ofProcessor = arch() === 'arm64' ? 'cpu:aarch64' : 'cpu:x86-64';
      const list = computeCapability === undefined ? ofProcessor : `sm_${computeCapability.join('')}`;
      const built = await run(process.execPath, [MAIN, 'build', path.join(folder, 'kernels.mjs'), '--out', images, '--for', list]);
      expect(built.stdout).toContain('3 built');
      // No compiler, no cache, no home.
      const empty = path.join(folder, 'empty');
      mkdirSync(empty);
      const env = {
        ...Object.fromEntries(
          Object.entries(process.env).filter(([name]) => /^MILLRACE_(?:CUDA_DRIVER|FAKE)|^LD_LIBRARY_PATH$/.test(name)),
        ),
        PATH: empty,
        MILLRACE_CACHE: 'off',
        MILLRACE_NVRTC: '/nonexistent',
        MILLRACE_NVCC: '/nonexistent',
      };
      const { stdout } = await run(process.execPath, [path.join(folder, 'launches.mjs'), id, images], { env });
      const { values, error } = JSON.parse(stdout) as { values: number[]; error: string };
      expect(values).toEqual([12, 18, 24, 30]);
      expect(error).toMatch(/^CompileError K708: Kernel 'other' has no image .*images.*npx millrace build/);
    });

    rule('S819', 'a folder that cannot be used is refused at openDevice, with the remedy', async () => {
      const { id } = await target.open().then(async (device) => {
        await device.close();
        return device.info;
      });
      await expect(openDevice(id, { images: path.join(folder, 'absent') })).rejects.toMatchObject({
        name: 'UnavailableError',
        message: expect.stringMatching(/absent.*cannot be read/),
      });
      const url = pathToFileURL(folder);
      const empty = {
        name: 'UnavailableError',
        message: expect.stringMatching(/^The folder \('\/[^']*millrace-images-[^]*manifest\.json[^]*npx millrace build/),
      };
      for (const images of [url, url.href]) await expect(openDevice(id, { images })).rejects.toMatchObject(empty);
      for (const images of [url.href, path.relative('', folder)]) {
        vi.stubEnv('MILLRACE_IMAGES', images);
        await expect(openDevice(id)).rejects.toMatchObject(empty);
      }
      vi.unstubAllEnvs();
      await expect(openDevice(id, { images: 'file://elsewhere/images' })).rejects.toThrow(/neither a path nor a file: URL/);
      await expect(openDevice(id, { images: 7 as never })).rejects.toThrow(/The folder of images \(7\) is neither a path nor a file: URL/);
      // A refused opening leaves nothing behind.
      await (await target.open()).close();
    });
  });
});
