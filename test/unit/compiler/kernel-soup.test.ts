// Kernels of this repository with mistakes: each is refused with a typed error, or emitted for both devices.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Node, parse, tokenizer, type TokenType } from 'acorn';
import { transformSync } from 'esbuild';
import { expect, test } from 'vitest';
import * as library from '../../../src/index.js';
import { written } from '../../../src/compiler/codegen/emit-sources.js';
import { kernelOfText } from '../../../src/compiler/definitions/kernel.js';
import { lowerFunctions } from '../../../src/compiler/definitions/func.js';
import { KernelTextError } from '../../../src/compiler/diagnostics/diagnostics.js';
import type { FuncIr } from '../../../src/compiler/ir/ir.js';
import { ArgumentError, CompileError } from '../../../src/core/base/errors.js';
import type { Params } from '../../../src/core/kernels/kernel.js';
import { IS_LONG } from '../../support/long.js';
import { type RandomNumber, randomFrom } from '../../support/random-text.js';

const RUNS = IS_LONG ? 100_000 : 2000;
/** Far more than any of these needs. */
const PROMPT_MS = 5000;
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

interface Ingredient {
  readonly params: Params;
  readonly functions: ReadonlyMap<string, FuncIr>;
  /** The tokens of the body, each with the blanks before it. */
  readonly words: readonly string[];
  /** The kind of each. */
  readonly kinds: readonly string[];
}

/** The kernels of a file whose parameters name only what the library exports. */
function kernelsIn(file: string): Ingredient[] {
  const { code } = transformSync(readFileSync(file, 'utf8'), { loader: 'ts', target: 'es2022' });
  const found: Ingredient[] = [];
  const textOf = ({ start, end }: Node): string => code.slice(start, end);
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) node.forEach(visit);
    else if (node !== null && typeof node === 'object' && 'type' in node) {
      const { callee, arguments: given = [] } = node as { callee?: { name?: string }; arguments?: Node[] };
      const [, params, body, opts] = given;
      if (callee?.name === 'kernel' && params !== undefined && body !== undefined) {
        try {
          const words: string[] = [];
          const kinds: string[] = [];
          let at = 0;
          for (const { type, end } of tokenizer(textOf(body), { ecmaVersion: 'latest' })) {
            words.push(textOf(body).slice(at, end));
            kinds.push((type as TokenType & { binop: number | null }).binop === null ? type.label : 'operator');
            at = end;
          }
          const { functions = {} } = opts === undefined ? {} : (valueOf(textOf(opts)) as { functions?: object });
          found.push({ params: valueOf(textOf(params)) as Params, functions: lowerFunctions(functions as never), words, kinds });
        } catch {
          // It names what only its file has.
        }
      }
      Object.values(node).forEach(visit);
    }
  };
  visit(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }));
  return found;
}

const names = Object.keys(library).filter((name) => name !== 'default');
const valueOf = (text: string): unknown => new Function(...names, `return (${text});`)(...Object.values(library)) as unknown;

const INGREDIENTS = ['examples', 'test/conformance/kernels', 'test/support', 'test/unit/toolchain']
  .flatMap((folder) => readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(ROOT, folder, file)))
  .filter((file) => file.endsWith('.ts'))
  .flatMap(kernelsIn);

const EXTRA =
  '( ) { } [ ] ; , ... => ?. ?? ** - ! ~ typeof void null undefined NaN Infinity 1e400 0x7fffffffffff -0 1n "s" `t` this new let const var function class ' +
  'return break continue for while do if else switch case try throw true false arguments x i x[i] += ++ >>> << % Math.max Math. .length .x [0] [1e9] in of ' +
  'await yield delete async debugger f32( i64( vec3( /* // && || ?';
const EXTRAS = EXTRA.split(' ');
const NUMBERS = ['0', '-1', '1e300', '2147483648', '0.5', '4294967296', '1e-320', '9007199254740993', '64'];
const OPERATORS = ['+', '-', '*', '/', '%', '**', '<<', '>>', '>>>', '&', '|', '^', '&&', '||', '??', '<', '===', '==', 'in'];

/** The text with up to four mistakes. Most of them put a token of the same kind in the place of another, so that the text can be parsed. */
function soup({ words: whole, kinds }: Ingredient, random: RandomNumber): string {
  const words = [...whole];
  const pick = <T>(of: readonly T[]): T => of[random(of.length)]!;
  for (let n = 1 + random(4); n > 0; n--) {
    const at = random(words.length);
    const kind = kinds[at];
    const put = (word: string): void => void (words[at] = ` ${word} `);
    if (random(3) > 0) {
      if (kind === 'num' && random(2) === 0) put(pick(NUMBERS));
      else if (kind === 'operator' && random(2) === 0) put(pick(OPERATORS));
      else if (kind !== undefined) put(pick(whole.filter((_, i) => kinds[i] === kind)));
      continue;
    }
    const other = random(words.length);
    const how = random(5);
    if (how === 0) words[at] = ' ';
    else if (how === 1) words[at] += ` ${words[at]}`;
    else if (how === 2) [words[at], words[other]] = [words[other]!, words[at]!];
    else if (how === 3) put(`${pick(EXTRAS)} ${words[at]}`);
    else {
      const { words: others } = pick(INGREDIENTS);
      const from = random(others.length);
      words.splice(at, random(4), ' ', ...others.slice(from, from + 1 + random(8)), ' ');
    }
  }
  return words.join('');
}

test('kernels with mistakes are refused with a typed error, or emitted', { timeout: 30_000 + RUNS * 20 }, () => {
  expect(INGREDIENTS.length).toBeGreaterThan(50);
  const random = randomFrom(Number(process.env['MILLRACE_KERNEL_SEED'] ?? 1));
  const ends = { emitted: 0, refused: 0 };
  for (let n = 0; n < RUNS; n++) {
    const one = INGREDIENTS[random(INGREDIENTS.length)]!;
    const text = soup(one, random);
    const isChecked = random(2) === 0;
    const before = process.cpuUsage();
    try {
      const made = kernelOfText('k', one.params, text, one.functions, { file: undefined, line: 0 }, isChecked);
      written(made.build as never, 'always');
      ends.emitted++;
    } catch (error) {
      const isTyped = error instanceof CompileError || error instanceof KernelTextError || error instanceof ArgumentError;
      if (!isTyped) throw new Error(`An error without a type, of this kernel:\n${text}`, { cause: error });
      ends.refused++;
    }
    const ms = process.cpuUsage(before).user / 1e3;
    if (ms > PROMPT_MS) throw new Error(`${ms} ms for this kernel:\n${text}`);
  }
  // Neither are all of them wrong, nor all of them right.
  expect(Math.min(ends.emitted, ends.refused)).toBeGreaterThan(RUNS / 20);
});
