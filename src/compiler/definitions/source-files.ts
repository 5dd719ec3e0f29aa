// Reads CUDA C++ from files: the source itself, if a URL was given, and the headers that it includes.
// Thread: the caller's, at the call, because the call compares the source with the parameters.
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { includeFolders, inlineIncludes } from '../../cuda-cpp/read/included-files.js';
import { notRegular } from '../../cuda-cpp/read/regular-files.js';
import { withoutComments } from '../../cuda-cpp/read/tokens.js';
import { type CallSite, KernelTextError, toCompileError } from '../diagnostics/diagnostics.js';
import { refuseArgument, shortened } from './arguments.js';

/** A text that is no C++, and ends as files of CUDA C++ are called. */
const PATH = /^[^\n;{}()<>#]*\.(?:cuh?|c(?:c|pp|xx)|h(?:pp)?|inl|ptx|cubin)\s*$/;

/** Bounds the time of a call, which reads the source on the caller's thread, and the stack of regular expressions: V8's ends at about 2^23. */
const MAX_CHARS = 1 << 22;
/** Compilers recurse for each level; clang accepts 256. */
const MAX_DEPTH = 1000;

/** The bundle of the package replaces the expression wherever it is written. */
const OF_MODULE = ['import', 'meta', 'url'].join('.');

/** How to give a file. `path` may be a URL, or absolute. */
function urlOf(path: string): string {
  return /^(?:file:|\/)/.test(path) ? `new URL('${path.replace(/^\//, 'file:///')}')` : `new URL('${path}', ${OF_MODULE})`;
}

/** Source with the headers of its own project in it. */
export interface SourceFile {
  readonly source: string;
  /** The path that messages give for it. */
  readonly site: CallSite;
}

/**
 * The text of the source, with its own headers. `file`: the option of that name. Throws ArgumentError if the source is neither a string nor
 * the URL of a readable file, and for a string that is the path of a file.
 */
export function readSource(given: unknown, file: unknown, options: readonly string[], site: CallSite): SourceFile {
  if (file !== undefined && typeof file !== 'string') refuseArgument(`file (${shortened(file)}) must be a string, a path.`, 'file', file);
  const path = given instanceof URL ? pathOf(given) : file === undefined ? undefined : pathIn('.', file);
  const text = given instanceof URL ? contentOf(given, path as string) : given;
  if (typeof text !== 'string') {
    const what = given === null ? 'null' : typeof given;
    refuseArgument(`The source (${what}) must be a string, or the URL of a file: ${urlOf('./kernels.cu')}.`, 'source', given);
  }
  if (PATH.test(text)) {
    const shown = shortened(text.trim());
    const how = `pass its URL, ${urlOf(shown)}, or pathToFileURL(path) of node:url`;
    refuseArgument(`The source ('${shown}') is the path of a file, but a string is the text itself. For the file, ${how}.`, 'source', text);
  }
  const plain = text.replace(/^\uFEFF/, '');
  const place: CallSite = path === undefined ? site : { file: path, line: 1 };
  const folder = path === undefined ? '.' : dirname(path);
  refuseLarge(plain, place);
  const inlined = inlineIncludes(plain, folder, includeFolders(options), { read, resolve: pathIn, folderOf: dirname });
  if (inlined === undefined) return { source: plain, site: place };
  const { source, ...included } = inlined;
  return { source, site: { ...place, included } };
}

/** An absolute path, unless the working directory is gone: then no relative path exists. */
function pathIn(folder: string, name: string): string {
  try {
    return resolve(folder, name);
  } catch {
    return join(folder, name);
  }
}

/** Throws a CompileError for a source on which the passes of the library would take too long, or exhaust the stack. */
function refuseLarge(text: string, place: CallSite): void {
  const refuse = (at: number, problem: string, hint: string): never => {
    throw toCompileError(new KernelTextError('K006', { start: at, end: at + 1 }, problem, hint), undefined, { text }, place);
  };
  if (text.length > MAX_CHARS)
    refuse(0, `The source has ${text.length} characters (limit ${MAX_CHARS}).`, 'Put tables into arrays, and remove what no kernel needs.');
  let depth = 0;
  for (const { 0: bracket, index } of withoutComments(text).matchAll(/[([{}\])]/g)) {
    depth = '([{'.includes(bracket) ? depth + 1 : Math.max(0, depth - 1);
    if (depth > MAX_DEPTH) refuse(index, `The brackets are nested too deeply (limit ${MAX_DEPTH}).`, 'Split the expression or the block.');
  }
}

function pathOf(url: URL): string {
  if (url.protocol !== 'file:') refuseArgument(`The source (${shortened(url)}) must be a file: URL.`, 'source', url);
  return fileURLToPath(url);
}

function contentOf(url: URL, path: string): string {
  try {
    const reason = notRegular(path);
    if (reason !== undefined) throw new Error(`it ${reason}`);
    return readFileSync(path, 'utf8');
  } catch (error) {
    return refuseArgument(`The source (${path}) cannot be read: ${(error as Error).message}.`, 'source', url);
  }
}

/** The text of a header. Undefined if there is no such file: the next folder may have it, else the compiler reports it. */
function read(path: string): string | undefined {
  try {
    return notRegular(path) === undefined ? readFileSync(path, 'utf8') : undefined;
  } catch {
    return undefined;
  }
}
