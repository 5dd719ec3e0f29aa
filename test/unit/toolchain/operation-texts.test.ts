// The CUDA C++ of operations, which GPUs alone run: nvcc compiles it for elements of every type.
import { expect, test } from 'vitest';
import { DTYPES, type DType } from '../../../src/core/elements/dtype.js';
import { countText, moveText, OFFSETS_TEXT } from '../../../src/ops/radix-text.js';
import { chunksText, DIGIT_TEXT, searchText, takeText } from '../../../src/ops/select-text.js';
import { checkWithNvcc, hasNvcc } from '../../support/nvcc.js';

test.skipIf(!hasNvcc)('nvcc compiles sorts (skipped without nvcc)', { timeout: 300_000 }, () => {
  // The directions differ in one constant, so each type has one of them.
  const forms = (Object.keys(DTYPES) as DType[]).map((dtype, at) => ({ dtype, isDescending: at % 2 === 1 }));
  const texts = forms.flatMap((form) => [
    [countText(form), moveText(form, 'none', true), moveText(form, 'own', true), moveText(form, 'own', false)],
    [moveText(form, 'given', true), moveText(form, 'given', false), searchText(form), chunksText(form), takeText(form)],
  ]);
  const all = [OFFSETS_TEXT, DIGIT_TEXT, ...texts.flat()];
  expect(new Set(all).size).toBeGreaterThan(100);
  // As one translation unit: each text brings its own helpers, and macros of the same names.
  checkWithNvcc([
    all
      .map((text, at) => `namespace n${at} {\n${text.replaceAll('extern "C" ', '').replaceAll(/^#define (\w+)/gm, '#undef $1\n$&')}\n}`)
      .join('\n'),
  ]);
});
