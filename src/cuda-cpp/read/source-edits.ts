// Edits source without changing its lines, and maps the changed columns in messages back to the user's.
import { SOURCE_NAME } from '../../toolchain/base/diagnostics.js';
import type { Token } from './tokens.js';

export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Source as the compiler receives it. */
export interface EditedSource {
  readonly text: string;
  /** Rewrites a compiler's messages to the columns before the edits. */
  restore(log: string): string;
}

/** An edit's effect on the rest of its line: columns from `column` on move by `shift`. */
interface Shift {
  readonly column: number;
  readonly shift: number;
}

/**
 * Applies edits, which must not overlap or change the number of lines. Edits at one position apply in order. `tokens` are the source's;
 * they give the line that a compiler reports for a position.
 */
export function applyEdits(source: string, tokens: readonly Token[], edits: readonly Edit[]): EditedSource {
  const sorted = edits.toSorted((a, b) => a.start - b.start || a.end - b.end);
  const shifts = new Map<number, Shift[]>();
  let text = '';
  let copied = 0;
  let token = 0;
  let lineStart = 0;
  let lineEnd = 0;
  let shift = 0;
  for (const edit of sorted) {
    text += source.slice(copied, edit.start) + edit.text;
    copied = edit.end;
    let start = lineStart;
    for (; lineEnd >= 0 && lineEnd < edit.end; lineEnd = source.indexOf('\n', lineEnd + 1)) {
      if (source[lineEnd] === '\n') start = lineEnd + 1;
    }
    if (start !== lineStart) shift = 0;
    lineStart = start;
    const inserted = edit.text.length - edit.text.lastIndexOf('\n') - 1;
    shift = edit.text.includes('\n') ? inserted - (edit.end - start) : shift + inserted - (edit.end - Math.max(edit.start, start));
    while (token + 1 < tokens.length && tokens[token]!.end < edit.end) token++;
    const near = tokens[token]!;
    // The line follows from a token on the same line, or from the line breaks between.
    const between = source.slice(Math.min(near.start, edit.end), Math.max(near.start, edit.end)).split('\n').length - 1;
    const line = near.line + (near.start > edit.end ? -between : between);
    const list = shifts.get(line) ?? [];
    list.push({ column: edit.end - start + 1 + shift, shift });
    shifts.set(line, list);
  }
  text += source.slice(copied);
  const pattern = new RegExp(`(${SOURCE_NAME.replace('.', '\\.')}:)(\\d+):(\\d+):`, 'g');
  const restore = (log: string): string =>
    log.replace(pattern, (_match, name: string, line: string, column: string) => {
      const moved = shifts.get(Number(line))?.findLast((one) => one.column <= Number(column));
      return `${name}${line}:${Math.max(1, Number(column) - (moved?.shift ?? 0))}:`;
    });
  return { text, restore };
}

/** The source in [start, end), with the edits inside it applied. They are sorted and not nested. */
export function editedSlice(source: string, start: number, end: number, edits: readonly Edit[]): string {
  let text = '';
  let copied = start;
  for (const edit of edits) {
    if (edit.start < start || edit.end > end) continue;
    text += source.slice(copied, edit.start) + edit.text;
    copied = edit.end;
  }
  return text + source.slice(copied, end);
}
