// The lessons in the order in which they read best.
import * as gameOfLife from './game-of-life.js';
import * as histogram from './histogram.js';
import type { Run } from './lesson.js';
import * as mandelbrot from './mandelbrot.js';
import * as matmul from './matmul.js';
import * as nBody from './n-body.js';
import * as prefixSum from './prefix-sum.js';
import * as reduction from './reduction.js';
import * as saxpy from './saxpy.js';

export interface Lesson {
  readonly name: string;
  readonly run: Run;
}

export const LESSONS: readonly Lesson[] = [
  { name: 'saxpy', run: saxpy.run },
  { name: 'game-of-life', run: gameOfLife.run },
  { name: 'mandelbrot', run: mandelbrot.run },
  { name: 'n-body', run: nBody.run },
  { name: 'histogram', run: histogram.run },
  { name: 'reduction', run: reduction.run },
  { name: 'prefix-sum', run: prefixSum.run },
  { name: 'matmul', run: matmul.run },
];
