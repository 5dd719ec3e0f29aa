// Image keys include the package's identity: a new release must not load images of an old one.
import {
  chmodSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { stampOf, type MachineFacts } from '../../../src/toolchain/base/file-stamps.js';
import { findCxx } from '../../../src/toolchain/compilers/toolchain.js';
import {
  cpuIdentity,
  identityOf,
  identityOfCpu,
  installedIdentity,
  packageIdentity,
  SHIM_DIRECTORY,
} from '../../../src/toolchain/base/package-and-cpu-identity.js';
import { HEADER_DIRECTORY, WRITTEN_HEADERS } from '../../../src/toolchain/base/kernel-headers.js';

const BUILD = fileURLToPath(new URL('../../../src/toolchain/', import.meta.url));
const FRONT_END = fileURLToPath(new URL('../../../src/cuda-cpp/', import.meta.url));
const COMPILER = fileURLToPath(new URL('../../../src/compiler/', import.meta.url));
const CORE = fileURLToPath(new URL('../../../src/core/', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'millrace-identity-'));
const [shim, build, frontEnd, compiler, core] = ['shim', 'build', 'cuda-cpp', 'compiler', 'core'].map((name) => join(scratch, name)) as [
  string,
  string,
  string,
  string,
  string,
];
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Stores facts, and counts lookups. */
class Notes implements MachineFacts {
  readonly known = new Map<string, string>();
  recalled = 0;
  async recall(what: string, from: string): Promise<string | undefined> {
    const found = this.known.get(what + from);
    if (found !== undefined) this.recalled++;
    return found;
  }
  async remember(what: string, from: string, found: string): Promise<void> {
    this.known.set(what + from, found);
  }
}
/** A time at which files written now count as settled. */
const later = (): number => Date.now() + 5000;

test('an installed package stores its identity, and a checkout does not', () => {
  const [written, module] = [join(scratch, 'package-identity'), join(scratch, 'identity.js')];
  expect(installedIdentity(written, module)).toBeUndefined();
  writeFileSync(written, 'abc');
  expect(installedIdentity(written, module)).toBe('abc');
  writeFileSync(module, '');
  expect(installedIdentity(written, module)).toBeUndefined();
});

/** The transitive imports of a module, except errors, which do not affect sources, and the protocol, whose hash is also part of the key. */
function reached(path: string, known = new Set<string>()): Set<string> {
  if (known.has(path) || /\/(?:core\/base|protocol)\//.test(path)) return known;
  known.add(path);
  for (const [, from = ''] of readFileSync(path, 'utf8').matchAll(/^(?:import|export) (?!type )[^;]*? from '(\.[^']*)';$/gm))
    reached(join(path, '..', from.replace(/\.js$/, '.ts')), known);
  return known;
}

test('every file of the emitters counts', () => {
  const files = [...reached(join(COMPILER, 'codegen', 'emit-sources.ts'))];
  expect(files).toContain(join(CORE, 'elements', 'dtype.ts'));
  expect(
    files.filter(
      (path) => ![BUILD, FRONT_END, COMPILER, join(CORE, 'channel'), join(CORE, 'elements')].some((own) => path.startsWith(own)),
    ),
  ).toEqual([]);
});

test("the package's identity covers its shim and the code that reads, emits and rewrites sources", async () => {
  cpSync(SHIM_DIRECTORY, shim, { recursive: true });
  cpSync(BUILD, build, { recursive: true });
  cpSync(FRONT_END, frontEnd, { recursive: true });
  cpSync(COMPILER, compiler, { recursive: true });
  cpSync(CORE, core, { recursive: true });
  const own = [shim, HEADER_DIRECTORY, WRITTEN_HEADERS, build, frontEnd, compiler, join(core, 'channel'), join(core, 'elements')];
  expect(await packageIdentity()).toBe(await identityOf(own));
  const seen = new Set([await packageIdentity()]);
  const notes = new Notes();
  const changes: readonly (() => void)[] = [
    () => writeFileSync(join(shim, 'thread_index.h'), '// another'),
    () => writeFileSync(join(frontEnd, 'lower', 'loop-fission.ts'), '// another'),
    () => writeFileSync(join(build, 'rewrite.ts'), '// another'),
    () => writeFileSync(join(frontEnd, 'read', 'variables.ts'), '// another'),
    () => writeFileSync(join(compiler, 'simd', 'memory.ts'), '// another'),
    () => writeFileSync(join(core, 'elements', 'dtype.ts'), '// another'),
    () => writeFileSync(join(build, 'added.ts'), ''),
    () => renameSync(join(build, 'added.ts'), join(shim, 'added.ts')),
    () => writeFileSync(join(shim, 'include', 'added.h'), '// deeper'),
  ];
  for (const change of changes) {
    change();
    const identity = await identityOf(own);
    seen.add(identity);
    // Remembered or not.
    expect(await identityOf(own, notes, later())).toBe(identity);
    expect(await identityOf(own, notes, later())).toBe(identity);
  }
  expect(seen.size).toBe(1 + changes.length);
  expect(notes.recalled).toBe(changes.length);
  expect(notes.known.size).toBe(changes.length);
  writeFileSync(join(build, 'fission.d.ts'), 'declarations');
  writeFileSync(join(build, 'fission.js.map'), 'a map');
  expect(seen.has(await identityOf(own))).toBe(true);
});

test('the stamp of a file changes with its name, size and times', () => {
  const path = join(scratch, 'stamped');
  writeFileSync(path, 'one');
  const time = new Date(2020, 1, 1);
  utimesSync(path, time, time);
  const stamps = new Set([stampOf([path], later())]);
  const changes: readonly (() => void)[] = [
    () => writeFileSync(path, 'longer'),
    // The same size and the same time of change, as archives write them.
    () => (writeFileSync(path, 'latest'), utimesSync(path, time, time)),
    () => (writeFileSync(`${path}.new`, 'newest'), utimesSync(`${path}.new`, time, time), renameSync(`${path}.new`, path)),
    () => chmodSync(path, 0o600),
  ];
  for (const change of changes) {
    // The clock of the file system has ticks.
    for (const before = statSync(path).ctimeMs; statSync(path).ctimeMs === before; ) change();
    stamps.add(stampOf([path], later()));
  }
  expect(stamps.size).toBe(1 + changes.length);
  expect(stampOf([path])).toBe(undefined);
  expect(stampOf([path, join(scratch, 'absent')], later())).toBe(undefined);
  expect(stampOf([path], later())).toBe([...stamps].at(-1));
});

test("a compiler's version is read once while its file is unchanged", async () => {
  const notes = new Notes();
  // The program itself, not the script that stands before it in tests.
  const env = { ...process.env, MILLRACE_CXX: '', PATH: process.env['PATH']?.replace(/^[^:]*\/kept-compiler:/, '') };
  const found = await findCxx(env, notes);
  expect([notes.recalled, notes.known.size]).toEqual([0, 1]);
  expect(await findCxx(env, notes)).toEqual(found);
  expect([notes.recalled, notes.known.size]).toEqual([1, 1]);
  // Another path to it may be another compiler.
  symlinkSync(found.command, join(scratch, 'g++'));
  await findCxx({ MILLRACE_CXX: join(scratch, 'g++') }, notes);
  expect([notes.recalled, notes.known.size]).toEqual([1, 2]);
});

test("a wrapper's version is read each time", async () => {
  const scripted = join(scratch, 'clang++');
  writeFileSync(scripted, '#!/bin/sh\nexec g++ "$@"\n');
  chmodSync(scripted, 0o755);
  symlinkSync('/usr/bin/env', join(scratch, 'c++'));
  const notes = new Notes();
  for (const named of [scripted, `/usr/bin/env g++`, `${join(scratch, 'c++')} g++`]) {
    await findCxx({ ...process.env, MILLRACE_CXX: named }, notes);
    await findCxx({ ...process.env, MILLRACE_CXX: named }, notes);
  }
  expect([notes.recalled, notes.known.size]).toEqual([0, 0]);
});

test('the identity of the processor changes with its model and with what it can do', () => {
  const own = readFileSync('/proc/cpuinfo', 'utf8');
  expect(cpuIdentity()).toBe(identityOfCpu(own));
  const described = 'vendor_id : A\nmodel : 1\nflags : fpu avx2\nbogomips : 3\n\nvendor_id : A\nbogomips : 4\n';
  const same = described.replace('bogomips : 3', 'bogomips : 5').replace('bogomips : 4', 'bogomips : 6');
  expect(identityOfCpu(same)).toBe(identityOfCpu(described));
  const others = [described.replace('avx2', 'avx2 avx512f'), described.replace('model : 1', 'model : 2'), 'a name', 'another name'];
  expect(new Set([described, ...others].map(identityOfCpu)).size).toBe(5);
});
