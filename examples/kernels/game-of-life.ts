// Conway's game of life: a cell lives on with two or three neighbours, and is born with three.
//
// A thread a cell, in two dimensions: `i` is the row and `j` the column, as in the array. Every generation is a launch that
// reads one board and writes the other. The board is closed to a torus: what leaves it on the right comes in on the left.
import { cudaKernel, i32, input, kernel, output, u8, type Device } from 'millrace';
import { compare, FORMS, type Outcome, runAlone, someNumbers, timed } from './lesson.js';

export const generation = kernel('generation', { now: input(u8, 2), next: output(u8, 2) }, ({ now, next }, { i, j }) => {
  const [height, width] = now.shape;
  let neighbours = 0;
  for (let di = -1; di <= 1; di++) {
    for (let dj = -1; dj <= 1; dj++) {
      if (di !== 0 || dj !== 0) neighbours += now[(i + di + height) % height]![(j + dj + width) % width]!;
    }
  }
  next[i]![j] = neighbours === 3 || (neighbours === 2 && now.at(i, j) === 1) ? 1 : 0;
});

export const generationText = cudaKernel(
  'generation',
  { now: input(u8, 2), next: output(u8, 2), height: i32, width: i32 },
  `extern "C" __global__ void generation(const unsigned char* now, unsigned char* next, int height, int width) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= height || j >= width) return;
  int neighbours = 0;
  for (int di = -1; di <= 1; di++) {
    for (int dj = -1; dj <= 1; dj++) {
      if (di || dj) neighbours += now[(i + di + height) % height * width + (j + dj + width) % width];
    }
  }
  next[i * width + j] = neighbours == 3 || (neighbours == 2 && now[i * width + j]);
}`,
);

export function reference(now: Uint8Array, height: number, width: number): Uint8Array {
  return now.map((isAlive, at) => {
    const [i, j] = [Math.floor(at / width), at % width];
    let neighbours = -isAlive;
    for (const row of [i - 1, i, i + 1]) {
      for (const column of [j - 1, j, j + 1]) neighbours += now[((row + height) % height) * width + ((column + width) % width)]!;
    }
    return neighbours === 3 || (neighbours === 2 && isAlive === 1) ? 1 : 0;
  });
}

/** A third of it alive, by chance. */
function soup(height: number, width: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(someNumbers(height * width), (value) => (value < 1 / 3 ? 1 : 0));
}

export async function run(device: Device): Promise<readonly Outcome[]> {
  const [height, width] = [150, 201];
  const generations = 50;
  const first = soup(height, width);
  let expected: Uint8Array = first;
  for (let n = 0; n < generations; n++) expected = reference(expected, height, width);
  await Promise.all([device.compile(generation), device.compile(generationText)]);

  const outcomes: Outcome[] = [];
  for (const form of FORMS) {
    using a = device.from(first, { shape: [height, width] });
    using b = device.empty([height, width], 'u8');
    let [now, next] = [a, b];
    const ms = await timed(device, () => {
      for (let n = 0; n < generations; n++) {
        if (form === 'TypeScript') device.stream.launch(generation, [height, width], { now, next });
        else device.stream.launch(generationText, { threads: [height, width], block: [32, 8] }, { now, next, height, width });
        [now, next] = [next, now];
      }
    });
    outcomes.push(compare({ kernel: 'game-of-life', form, ms }, await now.read(), expected, 0));
  }
  return outcomes;
}

await runAlone(import.meta.url, run);
