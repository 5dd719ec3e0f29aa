// A compiler that keeps what it has made by content, so that no text is compiled twice: not by two workers, two projects or two runs,
// whatever else of the library has changed. It stands before the system's g++ and clang++ on the PATH of tests.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');
const SHIM = path.join(ROOT, 'native/cpu/shim');
const HEADERS = path.join(ROOT, 'native/kernel_headers');
/** What the build writes by native/headers.txt. */
const SHORT = path.join(ROOT, 'dist/headers');
const { MILLRACE_TEST_CACHE = '' } = process.env;
/** CI may keep this folder between its runs. */
const CACHES = process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache');
const STORE = path.resolve(MILLRACE_TEST_CACHE || path.join(CACHES, 'millrace/tests'));
/** Where results are kept: without a store, for this checkout. */
export const KEPT: string = MILLRACE_TEST_CACHE === 'off' ? path.join(ROOT, 'build/kept-compiler') : STORE;
/** Results that no run has used for so long are removed. */
const MOST_DAYS = 7;

type Variables = Readonly<Record<string, string>>;
/** vitest reads its configuration once for each project. */
const once: { MILLRACE_KEPT_COMPILER?: Variables } & typeof globalThis = globalThis;

/** The variables with which tests find this compiler. None where there is no g++, or where MILLRACE_TEST_CACHE is off. */
export function keptCompiler(): Variables {
  return (once.MILLRACE_KEPT_COMPILER ??= prepared());
}

function prepared(): Variables {
  const gcc = compilerOf('g++');
  // While files are watched, headers may change without a new digest.
  if (gcc === undefined || MILLRACE_TEST_CACHE === 'off' || !process.argv.includes('run')) return {};
  try {
    return write(gcc, [gcc, compilerOf('clang++')]);
  } catch {
    // Without a folder for results, tests use the compiler itself.
    return {};
  }
}

interface Compiler {
  readonly name: string;
  readonly file: string;
  readonly version: string;
}

function compilerOf(name: string): Compiler | undefined {
  const isCompiler = (file: string): boolean => existsSync(file) && path.basename(path.dirname(file)) !== 'kept-compiler';
  const folders = (process.env['PATH'] ?? '').split(path.delimiter);
  const file = folders.map((folder) => path.join(folder, name)).find(isCompiler);
  if (file === undefined) return undefined;
  const { status, stdout } = spawnSync(file, ['--version'], { encoding: 'utf8' });
  return status === 0 ? { name, file, version: stdout } : undefined;
}

function write(gcc: Compiler, compilers: readonly (Compiler | undefined)[]): Variables {
  const folder = path.join(ROOT, 'build/kept-compiler');
  mkdirSync(folder, { recursive: true });
  const source = path.join(ROOT, 'test/native/kept_compiler.cpp');
  const text = readFileSync(source, 'utf8');
  const allHeads = path.join(folder, 'heads');
  const current: string[] = [];
  for (const { name, file, version } of compilers.filter((one) => one !== undefined)) {
    const store = path.join(STORE, digestOf([version, text]));
    mkdirSync(store, { recursive: true });
    utimesSync(store, new Date(), new Date());
    const program = path.join(store, 'kept_compiler');
    compile(gcc, source, program);
    current.push(path.basename(store));
    // Not in the store: precompiled headers hold the paths of this checkout, and have 8 MB each.
    const heads = path.join(allHeads, path.basename(store));
    mkdirSync(heads, { recursive: true });
    const facts = [program, ROOT, SHIM, HEADERS, SHORT, heads, file, store].map(quoted);
    writeScript(path.join(folder, name), `exec ${facts.join(' ')} "$@"\n`);
  }
  for (const name of readdirSync(allHeads)) {
    if (!current.includes(name)) rmSync(path.join(allHeads, name), { recursive: true, force: true });
  }
  removeOld();
  return { PATH: `${folder}:${process.env['PATH']}`, ...residentNvcc(gcc, folder) };
}

function compile(gcc: Compiler, source: string, program: string): void {
  if (existsSync(program)) return;
  const fresh = `${program}.${process.pid}`;
  const { status, stderr } = spawnSync(gcc.file, ['-std=c++20', '-O1', '-o', fresh, source], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  renameSync(fresh, program);
}

/** The fake driver's compiler as one process for the whole run, and a script that asks it, and that knows its version. */
function residentNvcc(gcc: Compiler, folder: string): Variables {
  const compiler = path.join(ROOT, 'test/native/fake_cuda/nvcc.mjs');
  const { status, stdout } = spawnSync(process.execPath, [compiler, '--version'], { encoding: 'utf8' });
  if (status !== 0) return {};
  const source = path.join(ROOT, 'test/native/fake_cuda/nvcc_client.cpp');
  const client = path.join(folder, `nvcc_client-${digestOf([readFileSync(source, 'utf8'), gcc.version])}`);
  compile(gcc, source, client);
  const socket = path.join(tmpdir(), `millrace-fake-nvcc-${process.pid}`);
  rmSync(socket, { force: true });
  const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}` };
  // It ends when this process does, which closes its standard input.
  const server = spawn(process.execPath, [compiler, '--serve', socket], { cwd: ROOT, env, stdio: ['pipe', 'ignore', 'inherit'] });
  server.on('error', () => {});
  server.unref();
  (server.stdin as Socket).unref();
  process.on('exit', () => rmSync(socket, { force: true }));
  const version = `case $1 in --version) printf '%s' ${quoted(stdout)}; exit ;; esac`;
  const script = path.join(folder, 'fake-nvcc');
  writeScript(script, `${version}\nexec ${[client, socket, folder, ROOT, process.execPath, compiler].map(quoted).join(' ')} "$@"\n`);
  return { MILLRACE_FAKE_NVCC: script };
}

/** A shell reads a script while it runs it, perhaps for the tests of another run. */
function writeScript(file: string, text: string): void {
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, `#!/bin/sh\n${text}`, { mode: 0o755 });
  renameSync(fresh, file);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Changes with the compiler, the processor that it compiles for, and the headers. */
function digestOf(others: readonly string[]): string {
  const hash = createHash('sha256');
  for (const one of [...others, processor()]) hash.update(one).update('\0');
  for (const folder of [SHIM, HEADERS, SHORT]) {
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted()) {
      const file = path.join(folder, name);
      if (statSync(file).isFile()) hash.update(`${name}\0`).update(readFileSync(file)).update('\0');
    }
  }
  return hash.digest('hex').slice(0, 16);
}

function processor(): string {
  const [first = ''] = readFileSync('/proc/cpuinfo', 'utf8').split('\n\n');
  return first
    .split('\n')
    .filter((line) => /^(?:vendor_id|cpu family|model|stepping|flags|Features)\b/.test(line))
    .join('\n');
}

function removeOld(): void {
  for (const name of readdirSync(STORE)) {
    const folder = path.join(STORE, name);
    if (Date.now() - statSync(folder).mtimeMs > MOST_DAYS * 24 * 3600_000) rmSync(folder, { recursive: true, force: true });
  }
}
