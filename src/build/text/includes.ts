// What a CUDA text includes by name. A device or a pipe has no end, and a compiler would read it until its time is up, or
// as NVRTC in this process until memory is: only files are let through. What a macro names, or a header includes in
// its turn, is not looked at.
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { BuildSpec } from '../../core/channel/build.js';
import { compileError, titleOf } from '../base/diagnostics.js';

const INCLUDE = /^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]/gm;

/** Throws a CompileError K702 for an include of what is there and is no file. */
export function refuseEndlessIncludes(spec: BuildSpec): void {
  const folders = [process.cwd(), ...includeFolders(spec.options)];
  for (const { 1: name = '', 0: text, index } of spec.source.matchAll(INCLUDE)) {
    if (!folders.some((folder) => isEndless(resolve(folder, name)))) continue;
    const before = spec.source.slice(0, index).split('\n');
    const message = `${titleOf(spec)} includes '${name}', which is not a file.`;
    throw compileError(spec, message, [{ code: 'K702', line: before.length, column: text.indexOf(name) + 1, message }]);
  }
}

function includeFolders(options: readonly string[]): string[] {
  return options.flatMap((option, at) => {
    const match = /^(?:-I|--include-path)(?:=|\s*)(.*)$/s.exec(option);
    return match ? [match[1] || (options[at + 1] ?? '')] : [];
  });
}

function isEndless(path: string): boolean {
  try {
    const facts = statSync(path);
    return !facts.isFile() && !facts.isDirectory();
  } catch {
    return false;
  }
}
