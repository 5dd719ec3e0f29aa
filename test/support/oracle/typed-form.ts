// The typed form of a kernel's text, for the interpreter: the front end alone, which writes no C++.
import type { Params } from 'millrace';
import type { KernelIr, ScalarType } from '../../../src/compiler/ir/ir.js';
import type { Constants } from '../../../src/compiler/language/language.js';
import { lowerFunc, lowerKernel } from '../../../src/compiler/lowering/lower.js';
import { parseFunction } from '../../../src/compiler/source/parse.js';

interface HelperText {
  readonly params: readonly ScalarType[];
  readonly result: ScalarType;
  readonly body: string;
}

/** A function whose text is this one. */
export function textAsBody(text: string): never {
  return new Function(`return (${text});`)() as never;
}

export function irOfText(text: string, params: Params, helpers: Readonly<Record<string, HelperText>>, constants: Constants): KernelIr {
  const functions = new Map(
    Object.entries(helpers).map(([name, { params: types, result, body }]) => [
      name,
      lowerFunc(name, parseFunction(textAsBody(body)), types, result),
    ]),
  );
  return lowerKernel('random', parseFunction(textAsBody(text)), params, constants, functions);
}
