// Emits `print(...)` of a TypeScript kernel as one call of printf, and the format of each type.
import type { Expr, ScalarType } from '../ir/ir.js';
import type { ExpressionEmitter } from './expression.js';

const CONVERSIONS: Readonly<Record<ScalarType, string>> = {
  bool: '%s',
  i32: '%d',
  u32: '%u',
  i64: '%lld',
  u64: '%llu',
  f32: '%g',
  f64: '%g',
};

/** A single call, so that lines of different threads do not interleave. */
export function printCall(parts: readonly (string | Expr)[], expressions: ExpressionEmitter): string {
  const values: string[] = [];
  const format = parts.map((part) => {
    if (typeof part === 'string') return escaped(part).replaceAll('%', '%%');
    const text = expressions.emit(part);
    values.push(part.type === 'bool' ? `(${text}) ? "true" : "false"` : text);
    return CONVERSIONS[part.type as ScalarType];
  });
  return `printf(${[`"${format.join('')}\\n"`, ...values].join(', ')});`;
}

/** Content of a string literal. Octal escapes have three digits, so a following digit does not extend them. */
function escaped(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) => {
      const char = String.fromCharCode(byte);
      return byte >= 0x20 && byte < 0x7f && !'"\\?'.includes(char) ? char : `\\${byte.toString(8).padStart(3, '0')}`;
    })
    .join('');
}
