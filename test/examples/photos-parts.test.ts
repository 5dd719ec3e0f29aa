// The parts of the photos example that need no device.
import { describe, expect, it } from 'vitest';
import { filterPicture } from '../../examples/photos/reference.js';
import { Timeline } from '../../examples/photos/timeline.js';

function picture(width: number, height: number, pixel: (x: number, y: number) => readonly [number, number, number]) {
  const rgb = Uint8Array.from({ length: width * height * 3 }, (_, at) => {
    const index = Math.floor(at / 3);
    return pixel(index % width, Math.floor(index / width))[at % 3] ?? 0;
  });
  return { width, height, rgb };
}

const WEIGHTS = Float32Array.of(0.25, 0.5, 0.25);

describe('the reference', () => {
  it('leaves a picture of one colour as it is, without edges, in one bin', () => {
    const plain = picture(5, 4, () => [200, 100, 50]);
    const { blurred, sharp, edges, bins } = filterPicture(plain, WEIGHTS, 1.5);
    expect(blurred).toEqual(plain.rgb);
    expect(sharp).toEqual(plain.rgb);
    expect([...edges]).toEqual(Array.from({ length: 20 }, () => 0));
    const grey = (77 * 200 + 150 * 100 + 29 * 50) >> 8;
    expect([...bins]).toEqual(Array.from({ length: 256 }, (_, bin) => (bin === grey ? 20 : 0)));
  });

  it('spreads a dot by the weights, each channel for itself', () => {
    const dot = picture(5, 5, (x, y) => (x === 2 && y === 2 ? [160, 0, 80] : [0, 0, 0]));
    const { blurred } = filterPicture(dot, WEIGHTS, 1);
    const channel = (offset: number): number[] => Array.from({ length: 25 }, (_, at) => blurred[3 * at + offset] ?? -1);
    const spread = (value: number): number[] =>
      [0, 0, 0, 0, 0, 0, 1, 2, 1, 0, 0, 2, 4, 2, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0].map((share) => (share * value) / 16);
    expect(channel(0)).toEqual(spread(160));
    expect(channel(1)).toEqual(spread(0));
    expect(channel(2)).toEqual(spread(80));
  });

  it('sharpens a step on both sides of it and clips', () => {
    const step = picture(4, 1, (x) => (x < 2 ? [100, 10, 0] : [140, 250, 0]));
    const { sharp } = filterPicture(step, WEIGHTS, 1);
    expect([0, 1, 2, 3].map((x) => sharp[3 * x])).toEqual([100, 90, 150, 140]);
    expect([0, 1, 2, 3].map((x) => sharp[3 * x + 1])).toEqual([10, 0, 255, 250]);
  });

  it('finds upright and level edges alike', () => {
    const grey = (value: number): readonly [number, number, number] => [value, value, value];
    const upright = filterPicture(
      picture(4, 3, (x) => grey(x < 2 ? 0 : 20)),
      WEIGHTS,
      1,
    ).edges;
    const level = filterPicture(
      picture(3, 4, (_, y) => grey(y < 2 ? 0 : 20)),
      WEIGHTS,
      1,
    ).edges;
    expect([...upright.subarray(4, 8)]).toEqual([0, 80, 80, 0]);
    expect([1, 4, 7, 10].map((at) => level[at])).toEqual([0, 80, 80, 0]);
  });
});

describe('the timeline', () => {
  const timeline = new Timeline();
  timeline.add(0, 'decode', 'a', { startMs: 100, endMs: 110 });
  timeline.add(1, 'decode', 'b', { startMs: 105, endMs: 112 });
  timeline.add(2, 'decode', 'c', { startMs: 106, endMs: 107 });
  timeline.add(0, 'encode', 'a', { startMs: 130, endMs: 140 });

  it('counts a stage once, however many lanes are in it', () => {
    expect(timeline.busyMs('decode')).toBe(12);
    expect(timeline.busyMs('encode')).toBe(10);
    expect(timeline.busyMs('upload')).toBe(0);
    expect(timeline.bottleneck()).toEqual({ stage: 'decode', busyMs: 12 });
  });
});
