// Reads the parameters of a kernel from its tokens.
import type { FunctionTokens } from '../read/functions.js';
import type { Token } from '../read/tokens.js';

/** Their names in order; undefined when one is a reference, an array or unnamed. */
export function parameterNames(tokens: readonly Token[], { open, close }: FunctionTokens): string[] | undefined {
  const names: string[] = [];
  if (close === open + 1) return names;
  let name = '';
  for (let i = open + 1; i <= close; i++) {
    const { text, kind } = tokens[i]!;
    if ('([{=&'.includes(text)) return undefined;
    if (text === ',' || i === close) {
      if (name === '' || name === 'void') return undefined;
      names.push(name);
      name = '';
    } else if (kind === 'name') name = text;
  }
  return names;
}
