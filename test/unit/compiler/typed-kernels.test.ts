// nvcc compiles random kernels of all types, whose results test/conformance/arithmetic/random-kernels.test.ts compares.
import { test } from 'vitest';
import { compileWithNvcc, hasNvcc } from '../../support/nvcc.js';
import { cases } from '../../support/oracle/cases.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import type { Definition } from './fixtures/define.js';
import * as fixtures from './fixtures/kernels.js';

const SAMPLE = 16;

test.skipIf(!hasNvcc)('nvcc compiles random kernels (skipped where there is no nvcc)', { timeout: 300_000 }, () => {
  const source = cases(101);
  // With every construct that goes through the build tools. One is refused: it names what is outside.
  const constructs = Object.entries<Definition>(fixtures)
    .filter(([name]) => name !== 'outer')
    .map(([name, { params, body, options }]) => kernel(name, params, body as never, options as never));
  compileWithNvcc([...Array.from({ length: SAMPLE }, () => source.next().value.made), ...constructs]);
});
