// The compiler that tests use gives what g++ gave for the same text, and asks g++ for everything else.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';

const [own = '', ...others] = (process.env['PATH'] ?? '').split(':');
const scratch = mkdtempSync(path.join(tmpdir(), 'millrace-kept-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test.skipIf(!own.endsWith('kept-compiler'))('a text is compiled once, and again where anything else may differ', () => {
  const calls = path.join(scratch, 'calls');
  const counting = path.join(scratch, 'g++');
  writeFileSync(counting, `#!/bin/sh\necho >> ${calls}\nPATH=${others.join(':')} exec g++ "$@"\n`, { mode: 0o755 });
  const kept = path.join(scratch, 'kept-compiler');
  mkdirSync(kept);
  const script = readFileSync(path.join(own, 'g++'), 'utf8').replace(/'[^']*\/g\+\+'/, `'${counting}'`);
  writeFileSync(path.join(kept, 'g++'), script, { mode: 0o755 });
  writeFileSync(path.join(scratch, 'local.h'), 'int local;\n');
  let builds = 0;
  /** What was written, and how often g++ ran for it. */
  const compiled = (text: string, ...more: string[]) => {
    const folder = path.join(scratch, String(builds++));
    mkdirSync(folder);
    const output = path.join(folder, 'kernel.so');
    writeFileSync(calls, '');
    const { status, stderr } = spawnSync(path.join(kept, 'g++'), ['-x', 'c++', '-shared', '-fstack-usage', ...more, '-o', output, '-'], {
      input: text,
      encoding: 'utf8',
      cwd: scratch,
      // As nvcc calls it, whose own folder comes first.
      env: { PATH: ['/', kept, ...others].join(':'), TMPDIR: folder },
    });
    const image = existsSync(output) ? readFileSync(output).toString('latin1') : '';
    return { status, stderr, image, runs: readFileSync(calls, 'utf8').length };
  };

  const text = `// ${scratch}\n#warning told\nint answer() { return 42; }\n`;
  const first = compiled(text);
  expect(first).toMatchObject({ status: 0, runs: 1, stderr: expect.stringContaining('told') as string });
  expect(first.image).not.toBe('');
  expect(compiled(text)).toEqual({ ...first, runs: 0 });
  expect(compiled(text, '-O1').runs).toBe(1);
  expect(compiled(`${text}\n`).runs).toBe(1);
  // The text of a header that is not the shim's may have changed, and what was rejected may be a fault of the machine.
  for (const given of [`${text}#include "local.h"\n`, `${text}int wrong = ;\n`]) {
    const once = compiled(given);
    expect(once.status).toBe(given.includes('wrong') ? 1 : 0);
    expect([once.runs, compiled(given).runs]).toEqual([1, 1]);
  }
  expect([compiled(text, '-I', scratch).runs, compiled(text, '-I', scratch).runs]).toEqual([1, 1]);
});
