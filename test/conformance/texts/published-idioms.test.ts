// Chapter 4: idioms of published CUDA programs, against plain JavaScript. The files are in folders of test/cuda-texts.
import { describe } from 'vitest';
import { CALLABLE_CASES } from '../../cuda-texts/callable-cases.js';
import { CONVOLUTION_CASES } from '../../cuda-texts/convolution-cases.js';
import { FIELD_CASES } from '../../cuda-texts/field-cases.js';
import { FINANCE_CASES } from '../../cuda-texts/finance-cases.js';
import { GRAPH_CASES, UNORDERED_GRAPH_CASES } from '../../cuda-texts/graph-cases.js';
import { IMAGE_CASES } from '../../cuda-texts/image-cases.js';
import { LAYER_CASES } from '../../cuda-texts/layer-cases.js';
import { LEARNING_CASES } from '../../cuda-texts/learning-cases.js';
import { LINEAR_ALGEBRA_CASES } from '../../cuda-texts/linear-algebra-cases.js';
import { PHYSICS_CASES, UNORDERED_PHYSICS_CASES } from '../../cuda-texts/physics-cases.js';
import { PICTURE_CASES } from '../../cuda-texts/picture-cases.js';
import { PIXEL_CASES } from '../../cuda-texts/pixel-cases.js';
import { PRIMITIVE_CASES, UNORDERED_CASES } from '../../cuda-texts/primitive-cases.js';
import { SEARCHING_CASES, UNORDERED_SEARCHING_CASES } from '../../cuda-texts/searching-cases.js';
import { SIMULATION_CASES } from '../../cuda-texts/simulation-cases.js';
import { SOLVER_CASES } from '../../cuda-texts/solver-cases.js';
import { SORTING_CASES } from '../../cuda-texts/sorting-cases.js';
import type { TextCase } from '../../cuda-texts/text-case.js';
import { checkText } from '../../cuda-texts/text-check.js';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, type RuleOptions, rulesOf } from '../../support/rule.js';
import { pickedTexts } from '../../support/target.js';

const ORDERED: readonly TextCase[] = [
  ...PRIMITIVE_CASES,
  ...SIMULATION_CASES,
  ...LINEAR_ALGEBRA_CASES,
  ...LEARNING_CASES,
  ...LAYER_CASES,
  ...CONVOLUTION_CASES,
  ...IMAGE_CASES,
  ...PICTURE_CASES,
  ...PIXEL_CASES,
  ...GRAPH_CASES,
  ...SEARCHING_CASES,
  ...SORTING_CASES,
  ...SOLVER_CASES,
  ...PHYSICS_CASES,
  ...FINANCE_CASES,
  ...FIELD_CASES,
];

/** The order of their results is not fixed. */
const UNORDERED: readonly TextCase[] = [
  ...UNORDERED_CASES,
  ...UNORDERED_GRAPH_CASES,
  ...UNORDERED_SEARCHING_CASES,
  ...UNORDERED_PHYSICS_CASES,
];

defineChapter((target) => {
  describe('4 kernels: idioms of published CUDA C++', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    const only = ({ kernel }: TextCase): RuleOptions => ({
      unless:
        target.name === 'fake-cuda' &&
        kernel.includes('<') &&
        'the compiler of the fake driver stands in for nvcc, which builds no templates by name',
    });

    for (const one of pickedTexts(target, ORDERED))
      rule('S488', `${one.file}: ${one.kernel}`, () => checkText(chapter.device, one), only(one));
    for (const one of pickedTexts(target, CALLABLE_CASES))
      rule('S489', `${one.file}: ${one.kernel}`, () => checkText(chapter.device, one), only(one));
    for (const one of pickedTexts(target, UNORDERED))
      rule('S488', `${one.file}: ${one.kernel}`, () => checkText(chapter.device, one, (values) => values.toSorted()), only(one));
  });
});
