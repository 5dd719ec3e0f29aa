// Numbers as people read them.

const UNITS: readonly (readonly [string, number])[] = [
  ['s', 1e9],
  ['ms', 1e6],
  ['µs', 1e3],
  ['ns', 1],
];

/** A length of time with three digits: 12.3 ms. */
export function duration(ns: number): string {
  if (ns === 0) return '0 ns';
  const [unit, size] = UNITS.find(([, least]) => Math.abs(ns) >= least * 0.9995) ?? ['ns', 1];
  const value = ns / size;
  return `${size === 1 ? Math.round(value) : value.toPrecision(Math.abs(value) >= 999.5 ? 4 : 3)} ${unit}`;
}

/** A point in time, from the start of the recording, to the nanosecond. */
export function moment(ns: number): string {
  return `${(ns / 1e6).toFixed(6).replace(/(\.\d{3})(\d{3})$/, '$1 $2')} ms`;
}

export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let [value, unit] = [count, 0];
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.0995 && share > 0 ? 1 : 0)} %`;
}

export function whole(count: number): string {
  return count.toLocaleString('en');
}

export interface Axis {
  readonly at: readonly number[];
  /** What the texts count from, if times from the start would have too many digits. */
  readonly base: number | undefined;
  readonly text: (ns: number) => string;
}

/** Steps smaller than this share of the time are told from the first tick on. */
const LEAST_SHARE = 1e-4;

/** Ticks at least `leastNs` apart, at 1, 2 or 5 times a power of ten, with one unit for all, so that neighbours read alike. */
export function ticks(fromNs: number, toNs: number, leastNs: number): Axis {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, leastNs)));
  const step = Math.max(1, ([1, 2, 5, 10].find((times) => times * power >= leastNs) ?? 10) * power);
  const at: number[] = [];
  for (let n = Math.ceil(fromNs / step); n * step <= toNs; n++) at.push(n * step);
  const mostNs = Math.max(Math.abs(fromNs), Math.abs(toNs));
  const base = step < mostNs * LEAST_SHARE ? at[0] : undefined;
  const longest = base === undefined ? mostNs : toNs - fromNs;
  const [unit, size] = UNITS.find(([, least]) => longest >= least) ?? ['ns', 1];
  const digits = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
  return { at, base, text: (ns) => `${base === undefined ? '' : '+'}${((ns - (base ?? 0)) / size).toFixed(digits)} ${unit}` };
}
