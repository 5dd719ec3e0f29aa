// Where errors place their mistake: with maps and without, with an inspector and without. tool-matrix.test.ts has each build tool.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { runInThisContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { transformSync } from 'esbuild';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { f32, i32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { compileError } from './support.js';

test('messages have the names of the file, where esbuild gave locals other names', () => {
  const file = `const x = [1];
globalThis.bodyOfNames = ({ x }, { i }) => { const x2 = x[i]; if (!x2) x[i] = 1; };
x.length;`;
  runInThisContext(transformSync(file, { sourcemap: 'inline', sourcefile: '/names.ts', format: 'iife' }).code, { filename: '/names.js' });
  const { bodyOfNames } = globalThis as unknown as { bodyOfNames: never };
  expect(String(bodyOfNames)).toContain('!x22');
  const { message } = compileError(() => kernel('names', { x: inout(f32) }, bodyOfNames));
  expect(message).toMatch(/^K201: 'x2' is f32 .*\n.* at \/names\.ts:2:[^]* Compare it: x2 === 0\.$/);
});

describe('without a map', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-places-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const text = '\n  ({ x }, { i }) => {\n    x[i] = missing;\n  }\n';

  function complainAbout(code: string, filename: string): string {
    const body = runInThisContext(code, { filename }) as never;
    return compileError(() => kernel('plain', { x: inout(f32) }, body)).message.split('\n')[1]!;
  }

  test('the script is the place where its file has that line', () => {
    const path = join(folder, 'plain.js');
    writeFileSync(path, text);
    expect(complainAbout(text, path)).toBe(`  in kernel 'plain' at ${path}:3:12`);
    expect(complainAbout(text, pathToFileURL(path).href)).toBe(`  in kernel 'plain' at ${path}:3:12`);
  });

  test('the position is only near if the file differs or is missing, or the map cannot be read', () => {
    const path = join(folder, 'other.js');
    writeFileSync(path, '\n\n\n\n');
    const unreadable = ['data:application/json;base64,AAAA', 'data:application/json,{', 'absent.map', 'http://[', 'data:'];
    const texts = [text, ...unreadable.map((url) => `${text}\n//# sourceMappingURL=${url}`)];
    for (const one of texts) expect(complainAbout(one, path)).toMatch(/ near .*places\.test\.ts:\d+$/);
    expect(complainAbout(text, join(folder, 'absent.js'))).toMatch(/ near .*places\.test\.ts:\d+$/);
  });
});

describe('a source map', () => {
  const text = '\n  ({ x }, { i }) => {\n    x[i] = missing;\n  }\n';
  const placeIn = (map: object): string => {
    const json = JSON.stringify({ version: 3, sources: ['a.ts'], names: [], mappings: ';AAAA;AACA;AACA', ...map });
    const url = `data:application/json;base64,${Buffer.from(json).toString('base64')}`;
    const body = runInThisContext(`${text}\n//# sourceMappingURL=${url}`, { filename: '/folder/script.js' }) as never;
    return compileError(() => kernel('mapped', { x: inout(f32) }, body)).message.split('\n')[1]!;
  };

  test.each(['turbopack://[project]/a.ts', 'webpack:///./a.ts', 'http://[', 'file://elsewhere/a.ts', 'file:///a%2fb.ts'])(
    'may name its source %s, which is no path',
    (name) => expect(placeIn({ sources: [name] })).toContain(`${name}:`),
  );

  test.each([
    { sources: 5 },
    { sources: [5] },
    { sourceRoot: 7 },
    { sourcesContent: [5] },
    { sourcesContent: 5 },
    { mappings: 7 },
    { mappings: '~~~' },
    { sections: [{}] },
    { sections: [{ offset: { line: 0, column: 0 }, map: { version: 3, names: [], mappings: 'AAAA' } }] },
  ])('that has not the form of one leaves the place of the call: %j', (map) => {
    expect(placeIn(map)).toMatch(/^ {2}in kernel 'mapped' (?:near|at) /);
  });
});

describe('the inspector', () => {
  const mistake = (): string =>
    compileError(() =>
      kernel('k', { x: inout(i32) }, ({ x }, { i }) => {
        x[i] = i / 2;
      }),
    ).message;

  test('an attached debugger is not disturbed', () => {
    const debug = new Session();
    debug.connect();
    let pauses = 0;
    debug.on('Debugger.paused', () => {
      pauses++;
      debug.post('Debugger.resume');
    });
    debug.post('Debugger.enable');
    const stop = new Function('debugger;') as () => void;
    try {
      stop();
      expect(mistake()).toMatch(/ at .*places\.test\.ts:\d+:\d+\n/);
      expect(pauses).toBe(1);
      stop();
      expect(pauses).toBe(2);
    } finally {
      debug.disconnect();
    }
  });

  test('the inspector stays as it was', () => {
    mistake();
    // A session that is still open would stop here.
    new Function('debugger;')();
    expect(Object.getOwnPropertySymbols(globalThis).map(String)).not.toContain('Symbol(millrace.located function)');
  });

  test('without the inspector, the position is that of the call', () => {
    const load = vi.spyOn(process, 'getBuiltinModule').mockImplementation(() => {
      throw new Error('This Node has no inspector.');
    });
    try {
      expect(mistake()).toMatch(/ near .*places\.test\.ts:\d+\n/);
    } finally {
      load.mockRestore();
    }
  });

  test('the inspector also works in worker threads', async () => {
    const code = `
      import { parentPort } from 'node:worker_threads';
      const { kernel } = await import(${JSON.stringify(new URL('../../../dist/compiler/definitions/kernel.js', import.meta.url).href)});
      try { kernel('k', {}, () => { missing; }); } catch (error) { parentPort.postMessage(error.message); }
    `;
    const path = join(mkdtempSync(join(tmpdir(), 'millrace-places-')), 'worker.mjs');
    writeFileSync(path, code);
    const message = await new Promise((resolve, reject) => new Worker(path).once('message', resolve).once('error', reject));
    rmSync(dirname(path), { recursive: true });
    expect(message).toContain(` at ${path}:4:37`);
  });
});
