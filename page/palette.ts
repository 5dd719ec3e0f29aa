// Colours of the families of slices: each with a pattern as a second cue. Text on a slice has a contrast of at least 4.5 to it, and a slice one of at
// least 3 to the background, in both themes (WCAG 2.2, 1.4.3 and 1.4.11); test/unit/recording checks it.

export type Pattern = 'none' | 'rising' | 'falling' | 'lines' | 'columns' | 'dots' | 'grid' | 'rings';
export type Family =
  | 'kernel'
  | 'graph'
  | 'copy'
  | 'fill'
  | 'memory'
  | 'function'
  | 'other'
  | 'wait'
  | 'item'
  | 'stage'
  | 'build'
  | 'collection'
  | 'stall';

export interface Look {
  readonly name: string;
  readonly pattern: Pattern;
  /** Fill and text. */
  readonly light: readonly [string, string];
  readonly dark: readonly [string, string];
}

export const LOOKS: Readonly<Record<Family, Look>> = {
  kernel: { name: 'Kernel', pattern: 'none', light: ['#0b63a8', '#ffffff'], dark: ['#62b5f5', '#06121c'] },
  graph: { name: 'Graph', pattern: 'columns', light: ['#00705a', '#ffffff'], dark: ['#47c9a5', '#04140f'] },
  copy: { name: 'Copy', pattern: 'rising', light: ['#a44b00', '#ffffff'], dark: ['#f2a23c', '#1c1002'] },
  fill: { name: 'Fill', pattern: 'lines', light: ['#6d6200', '#ffffff'], dark: ['#d9cd55', '#161402'] },
  memory: { name: 'Allocate, free', pattern: 'dots', light: ['#59636e', '#ffffff'], dark: ['#a9b4c0', '#101418'] },
  function: { name: 'Host function', pattern: 'grid', light: ['#96397b', '#ffffff'], dark: ['#e796cb', '#1d0615'] },
  other: { name: 'Other', pattern: 'rings', light: ['#4d4a9c', '#ffffff'], dark: ['#aba8f0', '#0e0d22'] },
  wait: { name: 'Wait', pattern: 'falling', light: ['#626971', '#ffffff'], dark: ['#98a0aa', '#0b0f14'] },
  item: { name: 'Item', pattern: 'none', light: ['#3d4b5c', '#ffffff'], dark: ['#8fa3bb', '#0b1017'] },
  stage: { name: 'Stage', pattern: 'lines', light: ['#1d6f86', '#ffffff'], dark: ['#6cc4dc', '#04141a'] },
  build: { name: 'Build', pattern: 'columns', light: ['#7a4a21', '#ffffff'], dark: ['#d3a57c', '#1a0f06'] },
  collection: { name: 'Collection', pattern: 'dots', light: ['#8a3b3b', '#ffffff'], dark: ['#ec9a9a', '#1f0808'] },
  stall: { name: 'Stall', pattern: 'grid', light: ['#5c5c5c', '#ffffff'], dark: ['#b9b9b9', '#141414'] },
};

export const FAMILIES = Object.keys(LOOKS) as readonly Family[];

/** By what an operation or a span of the thread is. */
const FAMILY_OF: Readonly<Record<string, Family>> = {
  launch: 'kernel',
  graph: 'graph',
  'upload-graph': 'other',
  copy: 'copy',
  staging: 'copy',
  fill: 'fill',
  alloc: 'memory',
  free: 'memory',
  host: 'function',
  external: 'function',
  record: 'other',
  wait: 'wait',
  item: 'item',
  stage: 'stage',
  build: 'build',
  collection: 'collection',
  stall: 'stall',
};

export function familyOf(kind: string): Family {
  return FAMILY_OF[kind] ?? 'other';
}

/** How much of a slice's colour is left when a search does not find it. Its label has the colour of text then. */
export const DIMMED = 0.22;

/** Of everything that is no slice. */
export const CHROME = {
  light: {
    back: '#ffffff',
    band: '#f3f5f7',
    line: '#d5dae0',
    grid: '#e9ecf0',
    text: '#171b21',
    faint: '#57606a',
    accent: '#0b57a4',
    strip: '#8794a3',
  },
  dark: {
    back: '#14181d',
    band: '#1b2027',
    line: '#363e48',
    grid: '#232a32',
    text: '#e8ebef',
    faint: '#a3adb8',
    accent: '#74b8f6',
    strip: '#66727f',
  },
} as const;
export type Theme = keyof typeof CHROME;
