// Images are remembered by what the package brings to them too: a new release must not load what an old one built.
import { cpSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { identityOf, packageIdentity, SHIM_DIRECTORY } from '../../../src/build/compilers/cpu-compiler.js';

const BUILD = fileURLToPath(new URL('../../../src/build/', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'millrace-identity-'));
const [shim, build] = [join(scratch, 'shim'), join(scratch, 'build')];
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test('the identity of the package is that of its shim and of the code that rewrites texts', () => {
  cpSync(SHIM_DIRECTORY, shim, { recursive: true });
  cpSync(BUILD, build, { recursive: true });
  expect(packageIdentity()).toBe(identityOf([shim, build]));
  const seen = new Set([packageIdentity()]);
  const changes: readonly (() => void)[] = [
    () => writeFileSync(join(shim, 'index.h'), '// another'),
    () => writeFileSync(join(build, 'fission.ts'), '// another'),
    () => writeFileSync(join(build, 'coroutines.ts'), '// another'),
    () => writeFileSync(join(build, 'added.ts'), ''),
    () => renameSync(join(build, 'added.ts'), join(shim, 'added.ts')),
    () => writeFileSync(join(shim, 'include', 'added.h'), '// deeper'),
  ];
  for (const change of changes) {
    change();
    seen.add(identityOf([shim, build]));
  }
  expect(seen.size).toBe(1 + changes.length);
  writeFileSync(join(build, 'fission.d.ts'), 'declarations');
  writeFileSync(join(build, 'fission.js.map'), 'a map');
  expect(seen.has(identityOf([shim, build]))).toBe(true);
});
