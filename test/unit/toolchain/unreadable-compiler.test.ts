// A compiler that can be run but not read (mode 0711): its version is read each time, and it works.
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import { specOf } from './run-image.js';

// File modes do not restrict root, under which tests may run.
vi.mock('node:fs', async (original) => {
  const real = await original<typeof fs>();
  const refused = (path: fs.PathLike): boolean => /(?:g\+\+|gcc|clang)[-+\d.]*$/.test(String(path));
  return {
    ...real,
    openSync(path: fs.PathLike, ...rest: [fs.OpenMode]) {
      if (refused(path)) throw Object.assign(new Error(`EACCES: permission denied, open '${String(path)}'`), { code: 'EACCES' });
      return real.openSync(path, ...rest);
    },
  };
});

let cache = '';
beforeEach(() => {
  cache = fs.mkdtempSync(join(tmpdir(), 'millrace-unreadable-'));
});
afterAll(() => fs.rmSync(cache, { recursive: true, force: true }));

test('a compiler that cannot be read is found, prepared and used', async () => {
  const source = 'extern "C" __global__ void k(int* y) { y[0] = 1; }';
  for (const isFromCache of [false, true]) {
    const builder = new KernelBuilder({ backend: 'cpu' }, { ...process.env, MILLRACE_CACHE_DIR: cache });
    await builder.prepare();
    expect((await builder.build(specOf(source, 'k'))).fromCache).toBe(isFromCache);
  }
});
