// nvcc takes the texts of random kernels over all types, whose results test/conformance/random-kernels.ts compares.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { cases } from '../../support/oracle/cases.js';

const SAMPLE = 6;
const nvcc = process.env['MILLRACE_NVCC'] ?? 'nvcc';
const hasNvcc = spawnSync(nvcc, ['--version']).status === 0;
const directory = mkdtempSync(join(tmpdir(), 'millrace-typed-kernels-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test.skipIf(!hasNvcc)('nvcc takes random kernels (skipped where there is no nvcc)', { timeout: 300_000 }, () => {
  const source = cases(101);
  for (let n = 0; n < SAMPLE; n++) {
    const { seed, made } = source.next().value;
    const text = join(directory, `${seed}.cu`);
    writeFileSync(text, made.source);
    const { status, stderr } = spawnSync(nvcc, ['--ptx', '-w', '-o', join(directory, 'text.ptx'), text], { encoding: 'utf8' });
    expect(stderr, made.source).toBe('');
    expect(status).toBe(0);
  }
});
