// The random cases of each operation of millrace/ops that is not element by element, with the rule that it keeps.
import type { RuleNumber } from '../rule.js';
import type { Maker } from '../shaped-cases.js';
import { ASSEMBLY } from './assembly.js';
import { CREATION } from './creation.js';
import { elementwise } from './expressions.js';
import { ORDER } from './order.js';
import { PRODUCTS } from './products.js';
import { TRANSFORMS } from './transforms.js';

function ruled(number: RuleNumber, makers: Readonly<Record<string, Maker>>): Record<string, readonly [RuleNumber, Maker]> {
  return Object.fromEntries(Object.entries(makers).map(([name, make]) => [name, [number, make]]));
}

const { arange, linspace, eye, ...random } = CREATION;
const { matmul, dot, convolve2d, ...complex } = PRODUCTS;
const { put, compact, ...assembly } = ASSEMBLY;
const { cumsum, cumprod, binCount, histogram, unique, ...sorts } = ORDER;

export const SHAPED: Readonly<Record<string, readonly [RuleNumber, Maker]>> = {
  ...ruled('S1105', { elementwise }),
  ...ruled('S1109', { arange, linspace, eye }),
  ...ruled('S1110', random),
  ...ruled('S1111', { matmul, dot }),
  ...ruled('S1112', sorts),
  ...ruled('S1113', { cumsum, cumprod }),
  ...ruled('S1114', assembly),
  ...ruled('S1115', { binCount, histogram }),
  ...ruled('S1116', { compact, unique }),
  ...ruled('S1118', TRANSFORMS),
  ...ruled('S1119', complex),
  ...ruled('S1120', { convolve2d }),
  ...ruled('S1121', { put }),
};
