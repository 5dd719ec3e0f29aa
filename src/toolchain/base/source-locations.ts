// Finds the lines of the user's file that contain a kernel's source, when a message needs them.
//
// By default a CUDA C++ string is assumed to begin on the line of the call, although the literal may be some lines below. This searches the
// file for the string's lines, nearest to the call first. A string that is not in the file verbatim keeps the assumption.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { SourceMapping } from '../../core/channel/build-spec.js';

/** `mapping` with the actual lines of `source`, if they were only assumed and can be found. */
export function locate(source: string, mapping: SourceMapping): SourceMapping {
  const { of } = mapping;
  if (of !== undefined) return locateOwn(source, mapping, of);
  const { lines } = mapping;
  const isGuess = lines.length > 0 && lines.every((line, at) => line === lines[0]! + at);
  const file = isGuess ? linesOf(mapping.file) : undefined;
  if (file === undefined) return mapping;
  const text = source.split('\n');
  const guess = lines[0]! - 1;
  let best: number | undefined;
  for (let at = 0; at + text.length <= file.length; at++) {
    if (best !== undefined && Math.abs(at - guess) >= Math.abs(best - guess)) continue;
    if (standsAt(text, file, at)) best = at;
  }
  const start = best;
  return start === undefined ? mapping : { file: mapping.file, lines: lines.map((_line, at) => start + at + 1) };
}

/** As `locate`, for source with headers in it: the lines of the caller's file alone. */
function locateOwn(source: string, mapping: SourceMapping, of: readonly number[]): SourceMapping {
  // The lines before the first header: those that include headers are gone.
  const end = of.findIndex((file) => file !== 0);
  const known = mapping.lines.slice(0, end);
  if (known.length === 0) return mapping;
  const text = source.split('\n').slice(0, end).join('\n');
  const shift = locate(text, { file: mapping.file, lines: known }).lines[0]! - known[0]!;
  return { ...mapping, lines: mapping.lines.map((line, at) => (of[at] === 0 ? line + shift : line)) };
}

/** Code may precede a literal's first line and follow its last one; the lines between must be equal. */
function standsAt(text: readonly string[], file: readonly string[], at: number): boolean {
  const last = text.length - 1;
  if (last === 0) return text[0]!.trim() !== '' && file[at]!.includes(text[0]!);
  if (!file[at]!.endsWith(text[0]!) || !file[at + last]!.startsWith(text[last]!)) return false;
  for (let n = 1; n < last; n++) if (file[at + n] !== text[n]) return false;
  return true;
}

function linesOf(file: string): readonly string[] | undefined {
  try {
    return readFileSync(file.startsWith('file:') ? fileURLToPath(file) : file, 'utf8').split('\n');
  } catch {
    return undefined;
  }
}
