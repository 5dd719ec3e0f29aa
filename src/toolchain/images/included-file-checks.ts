// Checks the files that CUDA C++ source includes by name, and rejects those that are not regular files: a device or a pipe has no end, so a
// compiler would read it until its time limit, and NVRTC in this process until memory runs out. Names in macros and includes of headers are
// not checked.
import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { includeFolders, SYSTEM_HEADER } from '../../cuda-cpp/read/included-files.js';
import { notRegular } from '../../cuda-cpp/read/regular-files.js';
import { includesOf } from '../../cuda-cpp/read/directives.js';
import { withoutComments } from '../../cuda-cpp/read/tokens.js';
import type { BuildSpec } from '../../core/channel/build-spec.js';
import { compileError, titleOf } from '../base/diagnostics.js';

/** Throws a CompileError K702 for an include that exists and is not a file. */
export function refuseEndlessIncludes(spec: BuildSpec): void {
  const folders = ['.', ...includeFolders(spec.options)];
  for (const { name, at } of includesOf(spec.source, withoutComments(spec.source))) {
    if (name === '') continue;
    const paths = folders.map((folder) => (isAbsolute(name) ? name : join(folder, name)));
    const reason = paths.map(notRegular).find((one) => one !== undefined);
    // A compiler passes over a directory.
    const isElsewhere = SYSTEM_HEADER.test(name) || paths.some((path) => existsSync(path) && notRegular(path) === undefined);
    if (reason === undefined || (reason.startsWith('is a directory') && isElsewhere)) continue;
    const before = spec.source.slice(0, at).split('\n');
    const message = `${titleOf(spec)} includes '${name}', which ${reason}.`;
    throw compileError(spec, message, [{ code: 'K702', line: before.length, column: before.at(-1)!.length + 1, message }]);
  }
}

const READS_FILES = /\b(?:include|include_next|import|embed|__has_include|__has_include_next|__has_embed)\b/g;

/**
 * Whether source, options and compiler determine the compiled image. Headers of the user's may change although the source does not.
 * `hasFolders`: the compiler's own command line names header folders.
 */
export function isSelfContained({ source, options }: BuildSpec, hasFolders: boolean): boolean {
  if (options.some((option) => /^(?:-I|--include-path|-include|--pre-include)/.test(option))) return false;
  const spliced = source.replace(/(?:\\|\?\?\/)[ \t]*\r?\n/g, '');
  if (spliced.search(READS_FILES) < 0) return true;
  if (hasFolders) return false;
  const text = withoutComments(spliced);
  const system = includesOf(spliced, text).filter(({ name, isQuoted }) => !isQuoted && SYSTEM_HEADER.test(name.trim())).length;
  return (text.match(READS_FILES) ?? []).length === system;
}
