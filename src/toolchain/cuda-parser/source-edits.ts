// Changes to a text that keep its lines, and the way back from the changed columns to the user's.
import { TEXT_NAME } from '../base/diagnostics.js';
import type { Token } from './tokenizer.js';

export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A text as the compiler sees it. */
export interface EditedText {
  readonly text: string;
  /** A compiler's messages with the columns of the text before the edits. */
  restore(log: string): string;
}

/** Where an edit moved the rest of its line: from `column` on, by `shift`. */
interface Shift {
  readonly column: number;
  readonly shift: number;
}

/**
 * Applies edits, which neither overlap nor change the number of lines. Of those at one place the first comes first.
 * `tokens` are the text's: they know which line a compiler takes a place for.
 */
export function applyEdits(source: string, tokens: readonly Token[], edits: readonly Edit[]): EditedText {
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
    // From a token on the same line, or from the lines between.
    const between = source.slice(Math.min(near.start, edit.end), Math.max(near.start, edit.end)).split('\n').length - 1;
    const line = near.line + (near.start > edit.end ? -between : between);
    const list = shifts.get(line) ?? [];
    list.push({ column: edit.end - start + 1 + shift, shift });
    shifts.set(line, list);
  }
  text += source.slice(copied);
  const pattern = new RegExp(`(${TEXT_NAME.replace('.', '\\.')}:)(\\d+):(\\d+):`, 'g');
  const restore = (log: string): string =>
    log.replace(pattern, (_match, name: string, line: string, column: string) => {
      const moved = shifts.get(Number(line))?.findLast((one) => one.column <= Number(column));
      return `${name}${line}:${Math.max(1, Number(column) - (moved?.shift ?? 0))}:`;
    });
  return { text, restore };
}

/** The text in [start, end) with those of the edits that lie in it. They are sorted, and none is in another. */
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
