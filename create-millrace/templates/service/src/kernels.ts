// How close each request is to each reference: a dot product of two rows.
import { f32, input, kernel, output } from 'millrace';

export const score = kernel(
  'score',
  { requests: input(f32, 2), references: input(f32, 2), scores: output(f32, 2) },
  ({ requests, references, scores }, { i, j }) => {
    let sum = 0.0;
    for (let at = 0; at < requests.shape[1]; at++) sum += requests[i]![at]! * references[j]![at]!;
    scores[i]![j] = sum;
  },
);
