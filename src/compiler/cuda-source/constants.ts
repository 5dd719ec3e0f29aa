// Constants of floating point at namespace scope: `const float half = -two;`. nvcc computes them, while NVRTC takes those that another constant
// initialises only as `constexpr`.
import { declarationsOf } from './declarations.js';
import { withoutComments } from './tokens.js';

const FLOATING: ReadonlySet<string> = new Set(['float', 'double']);
const BEFORE: ReadonlySet<string> = new Set(['static', 'inline']);

/** The source with `constexpr` in place of `const` for them; the same string if it has none. */
export function withConstantExpressions(source: string): string {
  const found = declarationsOf(withoutComments(source));
  if (!found) return source;
  let made = '';
  let copied = 0;
  for (const { kind, isMember, from, to } of found.declarations) {
    if (kind !== 'variable' || isMember) continue;
    let at = from;
    while (BEFORE.has(found.tokens[at]?.text ?? '')) at++;
    const { text, start } = found.tokens[at]!;
    const words = found.tokens.slice(at + 1, to).map((token) => token.text);
    if (text !== 'const' || start < copied || !FLOATING.has(words[0] ?? '') || words[2] !== '=') continue;
    made += `${source.slice(copied, start)}constexpr`;
    copied = start + text.length;
  }
  return made + source.slice(copied);
}
