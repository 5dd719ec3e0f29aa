// Loops in which a thread waits for another thread: `while (atomicCAS(lock, 0, 1) != 0);`, `while (flag[0] == 0);` with a volatile flag.
//
// A GPU runs all threads of a launch in turn, so the other thread gets to write what the loop reads. The CPU device runs the threads of a
// block one after the other, and blocks as cores become free. So such a loop counts its iterations (the shim's spin.h): the launch fails
// when the loop has waited for too long, and until then every block of the launch has a separate thread.
//
// A loop waits if a turn changes nothing that the next turn reads, except memory that other threads write: it only reads memory, calls atomic
// functions, and assigns variables that only its conditions compare. A loop that is not recognised runs as ever.
import type { Edit } from '../read/source-edits.js';
import { closing, type Token } from '../read/tokens.js';
import { volatileNames } from '../read/volatile-names.js';

/** Functions that read memory which other threads write. */
const READS: RegExp = /^(?:atomic(?:CAS|Add|Sub|Or|And|Xor|Exch|Max|Min)(?:_block|_system)?|__ldc[gv]|__ldvolatile|load|test)$/;
/** Other functions and words before parentheses that change nothing. */
const HARMLESS: RegExp =
  /^(?:__threadfence(?:_block|_system)?|__nanosleep|min|max|if|while|sizeof|static_cast|reinterpret_cast|const_cast)$/;

/** Longest condition and body, in tokens, and most nested statements of a loop that may wait. They bound the time that a source takes. */
const MOST_TOKENS = 2000;
const MOST_NESTED = 32;

/** The edits for a source's loops. */
export function spinEdits(tokens: readonly Token[]): Edit[] {
  const edits: Edit[] = [];
  let volatiles: ReadonlySet<string> | undefined;
  /** The `while` of each `do`: it begins no loop of its own. */
  const ends = new Set<number>();
  const textAt = (i: number): string | undefined => tokens[i]?.text;
  const add = (loop: number, condition: readonly [from: number, to: number]): void => {
    const [from, to] = condition;
    const start = tokens[loop]!.start;
    edits.push({ start, end: start, text: 'for (mr_spin mr_spins_here; mr_spins_here.once();) ' });
    if (from >= to) {
      edits.push({ start: tokens[to]!.start, end: tokens[to]!.start, text: 'mr_spins_here.again()' });
      return;
    }
    edits.push({ start: tokens[from]!.start, end: tokens[from]!.start, text: '(' });
    edits.push({ start: tokens[to - 1]!.end, end: tokens[to - 1]!.end, text: ') && mr_spins_here.again()' });
  };
  for (let i = 0; i < tokens.length; i++) {
    const text = textAt(i);
    if ((text !== 'while' && text !== 'for' && text !== 'do') || ends.has(i)) continue;
    const open = text === 'do' ? behind(tokens, i + 1) + 1 : i + 1;
    if (text === 'do') ends.add(open - 1);
    if (textAt(open) !== '(' || (text === 'do' && textAt(open - 1) !== 'while')) continue;
    const close = closing(tokens, open);
    if (close >= tokens.length) break;
    let condition: readonly [number, number] = [open + 1, close];
    const body: readonly [number, number] = text === 'do' ? [i + 1, open - 1] : [close + 1, behind(tokens, close + 1)];
    if (text === 'for') {
      const first = nextSemicolon(tokens, open + 1, close);
      const second = nextSemicolon(tokens, first + 1, close);
      if (second >= close) continue;
      condition = [first + 1, second];
      // A loop that steps ends by itself.
      if (second + 1 < close) continue;
    }
    if (body[1] - open > MOST_TOKENS) continue;
    const isEndless = condition[0] === condition[1] || (condition[1] === condition[0] + 1 && /^(?:true|1)$/.test(textAt(condition[0])!));
    const parts = [tokens.slice(...condition), tokens.slice(...body)];
    if (isEndless && !parts[1]!.some((token) => token.text === 'break')) continue;
    volatiles ??= new Set(Object.values(volatileNames(tokens)).flatMap((names: ReadonlySet<string>) => [...names]));
    if (isWaiting(parts.flat(), volatiles)) add(i, condition);
  }
  return edits;
}

/** The token behind the statement that begins here; the end of the source if statements are nested too deeply. */
function behind(tokens: readonly Token[], from: number, nested = 0): number {
  const word = tokens[from]?.text ?? '';
  if (word === '{') return closing(tokens, from) + 1;
  if (!/^(?:if|for|while|switch|do)$/.test(word)) return nextSemicolon(tokens, from, tokens.length) + 1;
  if (nested === MOST_NESTED) return tokens.length;
  if (word === 'do') return nextSemicolon(tokens, behind(tokens, from + 1, nested + 1), tokens.length) + 1;
  const end = behind(tokens, closing(tokens, from + 1) + 1, nested + 1);
  return word === 'if' && tokens[end]?.text === 'else' ? behind(tokens, end + 1, nested + 1) : end;
}

/** The next semicolon outside of brackets, or `end`. */
function nextSemicolon(tokens: readonly Token[], from: number, end: number): number {
  let at = from;
  while (at < end && tokens[at]!.text !== ';') at = /^[([{]$/.test(tokens[at]!.text) ? closing(tokens, at) + 1 : at + 1;
  return at;
}

/** Whether the tokens of a loop's condition and body only wait. */
function isWaiting(tokens: readonly Token[], volatiles: ReadonlySet<string>): boolean {
  const assigned = new Set<string>();
  let doesRead = false;
  for (const [i, { kind, text }] of tokens.entries()) {
    const [before, after] = [tokens[i - 1]?.text ?? '', tokens[i + 1]?.text ?? ''];
    if (/^(?:for|do|switch|goto|return|asm|__asm__|delete|new)$/.test(text)) return false;
    if ((text === '+' || text === '-') && before === text) return false;
    if (text === '=' && after !== '=' && before !== '=') {
      if (/^[!<>]$/.test(before)) continue;
      // Only `name = ...` and `name *= ...`, of a variable and not of memory.
      const at = /^[-+*/%&|^]$/.test(before) ? i - 2 : i - 1;
      const target = tokens[at];
      if (target?.kind !== 'name' || /^[*.>\]]$/.test(tokens[at - 1]?.text ?? '') || volatiles.has(target.text)) return false;
      assigned.add(target.text);
    }
    if (kind !== 'name') continue;
    if (text === 'volatile' || volatiles.has(text)) doesRead = true;
    if (after !== '(') continue;
    if (READS.test(text)) doesRead = true;
    else if (!HARMLESS.test(text)) return false;
  }
  return doesRead && ![...assigned].some((name) => isUsedAsData(tokens, name));
}

/** Whether a variable has an effect besides the comparisons of the conditions: in a call, a subscript, or the value of an assignment. */
function isUsedAsData(tokens: readonly Token[], name: string): boolean {
  let depth = 0;
  let isValue = false;
  /** For each open bracket: is it a call or a subscript? */
  const around: boolean[] = [];
  for (const [i, { kind, text }] of tokens.entries()) {
    const before = tokens[i - 1];
    if (text === '(' || text === '[') {
      const isUse = text === '[' || (before?.kind === 'name' && !/^(?:if|while|__nanosleep)$/.test(before.text));
      around.push(isUse);
      if (isUse) depth++;
    } else if (text === ')' || text === ']') {
      if (around.pop() === true) depth--;
    } else if (text === ';' || text === '{') isValue = false;
    else if (text === '=' && tokens[i + 1]?.text !== '=' && !/^[=!<>]$/.test(before?.text ?? '')) isValue = true;
    if (kind === 'name' && text === name && (depth > 0 || isValue || before?.text === '*')) return true;
  }
  return false;
}
