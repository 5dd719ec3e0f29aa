// What goes over a socket: frames to the viewers, and what a viewer says.
import type { Force } from './fluid.js';

/** The number of the frame (u32), its width and its height (u16 each), little endian. The pixels follow: numbers of a palette. */
export const HEADER_BYTES = 8;

export interface Frame {
  readonly number: number;
  readonly bytes: Uint8Array;
}

/** A frame without its pixels. */
export function emptyFrame(number: number, width: number, height: number): Frame {
  const bytes = new Uint8Array(HEADER_BYTES + width * height);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, number >>> 0, true);
  view.setUint16(4, width, true);
  view.setUint16(6, height, true);
  return { number, bytes };
}

export function pixelsOf({ bytes }: Frame): Uint8Array {
  return bytes.subarray(HEADER_BYTES);
}

/** What the sliders set. */
export interface Settings {
  /** How much a mouse moves the fluid. */
  readonly force: number;
  /** What is left of the dye after a frame. */
  readonly keep: number;
  /** How bright an edge is. */
  readonly gain: number;
}

export const DEFAULTS: Settings = { force: 0.15, keep: 0.998, gain: 0.5 };
/** The least and the largest value of each setting. */
export const LIMITS: Readonly<Record<keyof Settings, readonly [number, number]>> = { force: [0, 2], keep: [0.9, 1], gain: [0, 2] };

export type Message =
  | { readonly kind: 'shown' }
  /** In shares of width and height. */
  | { readonly kind: 'force'; readonly force: Force }
  | { readonly kind: 'settings'; readonly settings: Partial<Settings> };

/** The message; undefined if it is none. */
export function readMessage(text: string): Message | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (value === 'shown') return { kind: 'shown' };
  if (Array.isArray(value)) {
    const isForce = value.length === 4 && value.every((one) => typeof one === 'number' && Math.abs(one) <= 1);
    return isForce ? { kind: 'force', force: value as unknown as Force } : undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const entries = Object.entries(value);
  const isGood = entries.every(([name, one]) => {
    const [least, most] = Object.hasOwn(LIMITS, name) ? LIMITS[name as keyof Settings] : [1, 0];
    return typeof one === 'number' && one >= least && one <= most;
  });
  return isGood ? { kind: 'settings', settings: value } : undefined;
}
