// The faces of a picture: pictures are decoded on a pool, the network is that of face-network.ts, and of boxes that overlap only the best one stays.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { CpuTasks } from 'millrace';
import { messageOf, Refusal } from '../command-line.js';
import type * as decoding from './decode.js';
import { FaceNetwork } from './face-network.js';
import { plainBoxes } from './face-plain.js';
import { COLUMNS, FIRST, SIDE, sidesOf, VALUES, WEIGHTS } from './face-shape.js';
import type { Model, PredictorOptions } from './predictor.js';

/** In pixels of the picture as it is shown. */
export interface Face {
  readonly score: number;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Faces {
  readonly width: number;
  readonly height: number;
  /** The surest first. */
  readonly faces: readonly Face[];
}

/** A picture that cannot be read, with the status of the answer. */
export class PictureError extends Error {
  readonly statusCode: number;

  constructor(statusCode: number, message: string) {
    super(message);
    this.statusCode = statusCode;
  }
}

/** Pictures in the service at a time: those that arrive, are decoded, or wait. */
export const MOST_PICTURES = 16;
/** A picture takes hundreds of times the work of a digit. */
const TIMES = 25;
/** Each lane has 11 MB for each picture of its largest batch. */
const MOST_IN_BATCH = 4;

export function faceOptions(digits: PredictorOptions): PredictorOptions {
  const [targetLatencyMs, maxQueueMs] = [TIMES * digits.targetLatencyMs, TIMES * digits.maxQueueMs];
  return { ...digits, maxItems: MOST_IN_BATCH, maxQueue: MOST_PICTURES, targetLatencyMs, maxQueueMs };
}

/** The model, whose pictures are JPEG or PNG. The pool stays the caller's. */
export function createFaces(cpu: CpuTasks<typeof decoding>): Model<Uint8Array, Faces, decoding.Size> {
  return {
    bytes: SIDE * SIDE * 3,
    numbers: sidesOf(SIDE).at(-1)! ** 2 * COLUMNS,
    prepare: async (bytes, into) => {
      const decoded = await cpu.run('decode', { bytes, side: SIDE, into });
      if ('message' in decoded) throw new PictureError(decoded.statusCode, decoded.message);
      return decoded;
    },
    answer: facesOf,
    open: (device, parameters, maxItems) => new FaceNetwork(device, parameters, maxItems),
    plain: plainBoxes,
  };
}

/** As in face-api: the least score, and the most of two boxes' union that both may cover. */
const LEAST_SCORE = 0.5;
const MOST_OVERLAP = 0.4;

/** `boxes` has centre, width, height, as parts of a square whose side is the longer one of the picture, and score of each box. */
export function facesOf(boxes: Float32Array, { width, height }: decoding.Size): Faces {
  const scale = Math.max(width, height);
  const found: Face[] = [];
  for (let at = 0; at < boxes.length; at += VALUES) {
    const [x, y, across, down, score] = boxes.subarray(at, at + VALUES) as unknown as [number, number, number, number, number];
    if (score > LEAST_SCORE)
      found.push({ score, x: scale * (x - across / 2), y: scale * (y - down / 2), width: scale * across, height: scale * down });
  }
  const faces: Face[] = [];
  for (const face of found.toSorted((one, other) => other.score - one.score)) {
    if (faces.every((better) => overlap(face, better) <= MOST_OVERLAP)) faces.push(face);
  }
  return { width, height, faces };
}

function overlap(one: Face, other: Face): number {
  const across = Math.min(one.x + one.width, other.x + other.width) - Math.max(one.x, other.x);
  const down = Math.min(one.y + one.height, other.y + other.height) - Math.max(one.y, other.y);
  const both = Math.max(0, across) * Math.max(0, down);
  return both / (one.width * one.height + other.width * other.height - both);
}

interface Manifest {
  readonly paths: readonly string[];
  readonly weights: readonly {
    readonly name: string;
    readonly shape: readonly number[];
    readonly quantization: { readonly scale: number; readonly min: number };
  }[];
}
/** What the network subtracts of each colour, and divides by, before its first layer. */
const MEANS = [117.001, 114.697, 97.404] as const;
const DIVISOR = 255;

/** The parameters of @vladmandic/face-api, a byte each, in the order of WEIGHTS. The first layer reads bytes as they are: it has taken in the means. */
export async function readFaceParameters(): Promise<Float32Array> {
  const manifestFile = 'model/tiny_face_detector_model-weights_manifest.json';
  try {
    const file = createRequire(import.meta.url).resolve(`@vladmandic/face-api/${manifestFile}`);
    const [{ paths, weights }] = JSON.parse(await readFile(file, 'utf8')) as [Manifest];
    const bytes = Buffer.concat(await Promise.all(paths.map((path) => readFile(join(dirname(file), path)))));
    const found = new Map<string, Float32Array>();
    let at = 0;
    for (const { name, shape, quantization } of weights) {
      const length = shape.reduce((product, size) => product * size, 1);
      found.set(
        name,
        Float32Array.from(bytes.subarray(at, (at += length)), (byte) => byte * quantization.scale + quantization.min),
      );
    }
    const all = WEIGHTS.map(({ name, rows, columns }) => {
      const one = found.get(name);
      if (one?.length !== rows * columns) throw new Error(`${name} has ${one?.length ?? 'no'} numbers, not ${rows * columns}`);
      return one;
    });
    const [filters, bias] = all as [Float32Array, Float32Array];
    for (const [n, weight] of filters.entries()) {
      filters[n] = weight / DIVISOR;
      bias[n % FIRST]! -= filters[n] * MEANS[Math.floor(n / FIRST) % 3]!;
    }
    return Float32Array.from(all.flatMap((one) => [...one]));
  } catch (error) {
    throw new Refusal(`The weights of the faces cannot be read (--no-faces): ${messageOf(error)}`);
  }
}
