// Where each row is, from the top of the rows.
import type { Place, Row } from './model.js';

export const HEADING = 26;
const STREAM = 22;
const STRIP = 9;
const PADDING = 5;
/** A row with many levels has low ones. */
const LEVELS_HEIGHT = 120;
const LEVEL = 18;
const LEAST_LEVEL = 3;

export interface RowBox {
  readonly row: Row;
  readonly top: number;
  readonly height: number;
  /** Of each level. */
  readonly levelHeight: number;
}

export interface Heading {
  readonly group: string;
  readonly top: number;
  readonly isOpen: boolean;
}

export interface Layout {
  readonly headings: readonly Heading[];
  readonly boxes: readonly RowBox[];
  readonly height: number;
}

/** Devices first, and the host below them, as readers look for devices; groups that are closed have no rows. */
export function layoutOf(rows: readonly Row[], closed: ReadonlySet<string>): Layout {
  const groups = [...new Set(rows.map(({ group }) => group))].toSorted((a, b) => Number(a === 'host') - Number(b === 'host'));
  const headings: Heading[] = [];
  const boxes: RowBox[] = [];
  let top = 0;
  for (const group of groups) {
    headings.push({ group, top, isOpen: !closed.has(group) });
    top += HEADING;
    if (closed.has(group)) continue;
    for (const row of rows) {
      if (row.group !== group) continue;
      const count = row.levels.length;
      const levelHeight = row.isStream ? STREAM : Math.max(LEAST_LEVEL, Math.min(LEVEL, Math.floor(LEVELS_HEIGHT / count)));
      const height = Math.max(LEVEL, levelHeight * count) + (row.isStream ? STRIP : 0) + 2 * PADDING;
      boxes.push({ row, top, height, levelHeight });
      top += height;
    }
  }
  return { headings, boxes, height: top };
}

export function topOfLevel({ top, levelHeight }: RowBox, level: number): number {
  return top + PADDING + level * levelHeight;
}

/** The strip of pending operations below the slices of a stream. */
export function stripOf(box: RowBox): { readonly top: number; readonly height: number } {
  return { top: topOfLevel(box, 1) + 1, height: STRIP };
}

export function boxAt({ boxes }: Layout, y: number): RowBox | undefined {
  return boxes.find(({ top, height }) => top <= y && y < top + height);
}

export function boxOf({ boxes }: Layout, { row }: Pick<Place, 'row'>): RowBox | undefined {
  return boxes.find((box) => box.row.index === row);
}
