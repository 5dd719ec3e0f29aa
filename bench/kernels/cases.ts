// One kernel of bench/kernels.ts with its data: what is launched, how, and the sum of what it wrote, by which both sides show that they
// did the same. The data are those of bench/native/kernels_common.h.
import { readFileSync } from 'node:fs';
import {
  cudaKernel,
  f32,
  i32,
  inout,
  input,
  output,
  u32,
  u8,
  type DeviceArray,
  type Kernel,
  type LaunchShape,
  type Stream,
} from 'millrace';
import * as typescript from './typescript.js';

/** `one by one`: a checked TypeScript function whose threads the CPU device does not run side by side. */
export const FORMS = ['checked', 'unchecked', 'one by one', 'CUDA text'] as const;
export type Form = (typeof FORMS)[number];
type OfTypeScript = Exclude<Form, 'CUDA text'>;

/** A kernel in one of its forms, its arguments bound. */
export interface Bound {
  readonly kernel: Kernel;
  readonly launch: () => void;
}

export interface Prepared {
  /** What it works on, to be disposed of. */
  readonly arrays: readonly DeviceArray[];
  readonly forms: Readonly<Record<Form, Bound>>;
  /** Back to what the first launch finds, where launches add to it. */
  readonly reset?: () => void;
  readonly sum: () => Promise<number>;
}

export interface Case {
  readonly name: string;
  /** By backend: what keeps the device busy for some milliseconds, or, on a GPU, for some tenths of one. */
  readonly size: { readonly cpu: number; readonly cuda: number };
  readonly prepare: (stream: Stream, size: number) => Prepared;
}

const TEXT = readFileSync(new URL('../../../../bench/native/kernels.cuh', import.meta.url), 'utf8');
const CUDA = {
  saxpy: cudaKernel('saxpy', { a: f32, x: input(f32), y: inout(f32), n: i32 }, TEXT),
  nbody: cudaKernel('nbody', { bodies: input(f32, 2), pull: output(f32, 2), n: i32 }, TEXT),
  mandelbrot: cudaKernel('mandelbrot', { steps: output(i32, 2), most: i32, height: i32, width: i32 }, TEXT),
  life: cudaKernel('life', { from: input(u8, 2), to: output(u8, 2), height: i32, width: i32 }, TEXT),
  histogram: cudaKernel('histogram', { data: input(u8), bins: inout(u32), n: i32 }, TEXT),
  binned: cudaKernel('binned', { data: input(u8), bins: inout(u32) }, TEXT),
  matmul: cudaKernel('matmul', { a: input(f32, 2), b: input(f32, 2), c: output(f32, 2), n: i32 }, TEXT),
  reduction: cudaKernel('reduction', { x: input(f32), sums: output(f32) }, TEXT),
};

const hash = (place: number): number => Math.imul(place, 2654435761) >>> 8;
const fractions = (count: number, first = 0): Float32Array => Float32Array.from({ length: count }, (_, i) => hash(first + i) / 2 ** 24);
const bytes = (count: number, end: number): Uint8Array => Uint8Array.from({ length: count }, (_, i) => hash(i) % end);

async function sumOf(array: DeviceArray): Promise<number> {
  const values = (await array.read()) as ArrayLike<number>;
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum;
}

async function weighed(bins: DeviceArray<'u32'>): Promise<number> {
  return (await bins.read()).reduce((sum, count, bin) => sum + (Math.imul(count, bin) >>> 0), 0);
}

/** `typescript` and `cuda` give the launch of a kernel: each knows its arguments' types. */
function forms(of: (form: OfTypeScript) => Bound, cuda: Bound): Record<Form, Bound> {
  return { checked: of('checked'), unchecked: of('unchecked'), 'one by one': of('one by one'), 'CUDA text': cuda };
}

function inForm<K extends Kernel>(make: (bounds: 'checked' | 'unchecked') => K, form: OfTypeScript): K {
  if (form !== 'one by one') return make(form);
  // What is built of a kernel is no part of its type.
  const made = make('checked') as K & { readonly build: object };
  const { form: _form, ...facts } = made.build as { readonly form: object };
  return { ...made, build: { ...facts, source: made.source, mapping: { file: made.name, lines: [] } } };
}

/** Blocks of 256 or 16 x 16 threads, as the programs beside have them. */
const line = (n: number): LaunchShape => ({ threads: n, block: 256 });
const square = (n: number): LaunchShape => ({ threads: [n, n], block: [16, 16] });
const blocks = (n: number): LaunchShape => ({ grid: Math.ceil(n / 256), block: 256 });
const tiles = (n: number): LaunchShape => ({ grid: [Math.ceil(n / 16), Math.ceil(n / 16)], block: [16, 16] });

function saxpy(stream: Stream, n: number): Prepared {
  const x = stream.from(fractions(n));
  const y = stream.zeros(n);
  const made = (form: OfTypeScript): Bound => {
    const kernel = inForm(typescript.saxpy, form);
    return { kernel, launch: () => void stream.launch(kernel, line(n), { a: 0.5, x, y }) };
  };
  const cuda = { kernel: CUDA.saxpy, launch: () => void stream.launch(CUDA.saxpy, blocks(n), { a: 0.5, x, y, n }) };
  return { arrays: [x, y], forms: forms(made, cuda), reset: () => void stream.fill(y, 0), sum: () => sumOf(y) };
}

function nbody(stream: Stream, n: number): Prepared {
  const bodies = stream.from(fractions(4 * n), { shape: [n, 4] });
  const pull = stream.zeros([n, 3]);
  const made = (form: OfTypeScript): Bound => {
    const kernel = inForm(typescript.nbody, form);
    return { kernel, launch: () => void stream.launch(kernel, line(n), { bodies, pull }) };
  };
  const cuda = { kernel: CUDA.nbody, launch: () => void stream.launch(CUDA.nbody, blocks(n), { bodies, pull, n }) };
  return { arrays: [bodies, pull], forms: forms(made, cuda), sum: () => sumOf(pull) };
}

function mandelbrot(stream: Stream, n: number): Prepared {
  const steps = stream.zeros([n, n], 'i32');
  const made = (form: OfTypeScript): Bound => {
    const kernel = inForm(typescript.mandelbrot, form);
    return { kernel, launch: () => void stream.launch(kernel, square(n), { steps, most: 256 }) };
  };
  const args = { steps, most: 256, height: n, width: n };
  const cuda = { kernel: CUDA.mandelbrot, launch: () => void stream.launch(CUDA.mandelbrot, tiles(n), args) };
  return { arrays: [steps], forms: forms(made, cuda), sum: () => sumOf(steps) };
}

function life(stream: Stream, n: number): Prepared {
  const from = stream.from(bytes(n * n, 2), { shape: [n, n] });
  const to = stream.zeros([n, n], 'u8');
  const made = (form: OfTypeScript): Bound => {
    const kernel = inForm(typescript.life, form);
    return { kernel, launch: () => void stream.launch(kernel, square(n), { from, to }) };
  };
  const cuda = { kernel: CUDA.life, launch: () => void stream.launch(CUDA.life, tiles(n), { from, to, height: n, width: n }) };
  return { arrays: [from, to], forms: forms(made, cuda), sum: () => sumOf(to) };
}

function histogram(stream: Stream, n: number): Prepared {
  const data = stream.from(bytes(n, 256));
  const bins = stream.zeros(256, 'u32');
  const made = (form: OfTypeScript): Bound => {
    const kernel = inForm(typescript.histogram, form);
    return { kernel, launch: () => void stream.launch(kernel, line(n), { data, bins }) };
  };
  const cuda = { kernel: CUDA.histogram, launch: () => void stream.launch(CUDA.histogram, blocks(n), { data, bins, n }) };
  return { arrays: [data, bins], forms: forms(made, cuda), reset: () => void stream.fill(bins, 0), sum: () => weighed(bins) };
}

function binned(stream: Stream, n: number): Prepared {
  const data = stream.from(bytes(n, 256));
  const bins = stream.zeros(256, 'u32');
  const shape: LaunchShape = { grid: n / 16384, block: 256 };
  const made = (form: OfTypeScript): Bound => {
    const kernel = inForm(typescript.binned, form);
    return { kernel, launch: () => void stream.launch(kernel, shape, { data, bins }) };
  };
  const cuda = { kernel: CUDA.binned, launch: () => void stream.launch(CUDA.binned, shape, { data, bins }) };
  return { arrays: [data, bins], forms: forms(made, cuda), reset: () => void stream.fill(bins, 0), sum: () => weighed(bins) };
}

function matmul(stream: Stream, n: number): Prepared {
  const a = stream.from(fractions(n * n), { shape: [n, n] });
  const b = stream.from(fractions(n * n, n * n), { shape: [n, n] });
  const c = stream.zeros([n, n]);
  const made = (form: OfTypeScript): Bound => {
    const kernel = inForm(typescript.matmul, form);
    return { kernel, launch: () => void stream.launch(kernel, square(n), { a, b, c }) };
  };
  const cuda = { kernel: CUDA.matmul, launch: () => void stream.launch(CUDA.matmul, tiles(n), { a, b, c, n }) };
  return { arrays: [a, b, c], forms: forms(made, cuda), sum: () => sumOf(c) };
}

function reduction(stream: Stream, n: number): Prepared {
  const x = stream.from(fractions(n));
  const sums = stream.zeros(n / 256);
  const made = (form: OfTypeScript): Bound => {
    const kernel = inForm(typescript.reduction, form);
    return { kernel, launch: () => void stream.launch(kernel, line(n), { x, sums }) };
  };
  const cuda = { kernel: CUDA.reduction, launch: () => void stream.launch(CUDA.reduction, blocks(n), { x, sums }) };
  return { arrays: [x, sums], forms: forms(made, cuda), sum: () => sumOf(sums) };
}

const MEGA = 2 ** 20;
export const CASES: readonly Case[] = [
  { name: 'saxpy', size: { cpu: 16 * MEGA, cuda: 64 * MEGA }, prepare: saxpy },
  { name: 'nbody', size: { cpu: 4096, cuda: 32_768 }, prepare: nbody },
  { name: 'mandelbrot', size: { cpu: 1024, cuda: 8192 }, prepare: mandelbrot },
  { name: 'life', size: { cpu: 2048, cuda: 8192 }, prepare: life },
  { name: 'histogram', size: { cpu: 16 * MEGA, cuda: 64 * MEGA }, prepare: histogram },
  { name: 'binned', size: { cpu: 16 * MEGA, cuda: 64 * MEGA }, prepare: binned },
  { name: 'matmul', size: { cpu: 512, cuda: 2048 }, prepare: matmul },
  { name: 'reduction', size: { cpu: 16 * MEGA, cuda: 64 * MEGA }, prepare: reduction },
];
