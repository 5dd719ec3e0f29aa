// Draws rows: slices that are wide enough one by one, the others summed up for each column of pixels, so a frame takes as long as the view is wide, and
// a walk over the slices in view.
import { duration } from './format.js';
import { type Layout, type RowBox, stripOf, topOfLevel } from './layout.js';
import type { Level, Row } from './model.js';
import { CHROME, DIMMED, FAMILIES, type Family, LOOKS, type Theme } from './palette.js';
import { patternOf } from './patterns.js';
import type { View } from './view.js';

/** Narrower slices are summed up, in columns of this width. */
const COLUMN = 2;
const LEAST_TEXT = 24;
const LEAST_PATTERN = 7;
const TEXT_PADDING = 5;
const FONT = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
/** A gap tells its length or its reason if it is so wide. */
const LEAST_GAP_TEXT = 70;
/** What takes no time is there, too. */
const LEAST_SHARE = 1e-6;

export class RowPainter {
  readonly #context: CanvasRenderingContext2D;
  readonly #view: View;
  #theme: Theme = 'light';
  #patterns: ReadonlyMap<Family, CanvasPattern | undefined> = new Map();
  #sums: Record<Family, Float32Array> = {} as Record<Family, Float32Array>;
  #dimmed = new Float32Array(0);
  readonly #widths: Map<string, number> = new Map();

  constructor(context: CanvasRenderingContext2D, view: View) {
    this.#context = context;
    this.#view = view;
  }

  /** Call it after each change of the theme or the size. */
  prepare(theme: Theme, ratio: number): void {
    this.#theme = theme;
    this.#patterns = new Map(
      FAMILIES.map((family) => [family, patternOf(this.#context, LOOKS[family].pattern, LOOKS[family][theme][1], ratio)]),
    );
    const columns = Math.ceil(this.#view.width / COLUMN) + 1;
    this.#sums = Object.fromEntries(FAMILIES.map((family) => [family, new Float32Array(columns)])) as Record<Family, Float32Array>;
    this.#dimmed = new Float32Array(columns);
  }

  draw({ boxes }: Layout, scrollTop: number, height: number): void {
    const context = this.#context;
    const { band, line } = CHROME[this.#theme];
    context.textBaseline = 'middle';
    for (const box of boxes) {
      if (box.top + box.height < scrollTop || box.top > scrollTop + height) continue;
      if (box.row.isStream) {
        context.fillStyle = band;
        context.fillRect(0, topOfLevel(box, 0), this.#view.width, box.levelHeight);
      }
      context.fillStyle = line;
      context.fillRect(0, box.top + box.height - 1, this.#view.width, 1);
      for (const [at, level] of box.row.levels.entries()) this.#level(box.row, level, topOfLevel(box, at), box.levelHeight);
      if (box.row.isStream) this.#strip(box);
    }
  }

  #level(row: Row, level: Level, top: number, height: number): void {
    const view = this.#view;
    const { starts, ends, families, labels } = level;
    const { fromNs, toNs, nsPerPx, found } = view;
    const least = COLUMN * nsPerPx;
    const columnNs = COLUMN * nsPerPx;
    let hasSums = false;
    const first = level.firstAfter(fromNs - 6 * nsPerPx);
    let quietFrom = first > 0 ? ends[first - 1]! : Infinity;
    for (let at = first; at < level.count; at++) {
      const start = starts[at]!;
      const end = ends[at]!;
      if (row.isStream && quietFrom > -Infinity) this.#gap(row, quietFrom, start, top, height);
      if (start > toNs) break;
      if (!level.isKnown(at)) {
        this.#mark(start, top, height, families[at]!);
        continue;
      }
      quietFrom = end;
      if (end - start >= least) {
        this.#slice(start, end, top, height, families[at]!, labels[at]!);
        continue;
      }
      hasSums = true;
      const sums = found === undefined || found.has(labels[at]!) ? this.#sums[families[at]!] : this.#dimmed;
      const column = Math.max(0, Math.floor((start - fromNs) / columnNs));
      const split = fromNs + (column + 1) * columnNs;
      if (column >= sums.length) continue;
      sums[column]! += Math.max(0, Math.min(end, split) - Math.max(start, fromNs)) / columnNs + LEAST_SHARE;
      if (end > split && column + 1 < sums.length) sums[column + 1]! += (end - split) / columnNs;
    }
    if (hasSums) this.#columns(top, height);
  }

  /** The share of each column that slices of each family cover, above one another. */
  #columns(top: number, height: number): void {
    const context = this.#context;
    const used = new Float32Array(this.#dimmed.length);
    const fill = (sums: Float32Array, colour: string, alpha: number): void => {
      context.beginPath();
      let isEmpty = true;
      for (let column = 0; column < sums.length; column++) {
        const share = sums[column]!;
        if (share === 0) continue;
        sums[column] = 0;
        isEmpty = false;
        const below = used[column]!;
        // Something that is there is seen.
        const size = Math.max(1.5, Math.min(share, 1 - below) * height);
        used[column] = below + share;
        context.rect(column * COLUMN, Math.max(top, top + height - below * height - size), COLUMN, size);
      }
      if (isEmpty) return;
      context.fillStyle = colour;
      context.globalAlpha = alpha;
      context.fill();
      context.globalAlpha = 1;
    };
    for (const family of FAMILIES) fill(this.#sums[family], LOOKS[family][this.#theme][0], 1);
    fill(this.#dimmed, CHROME[this.#theme].faint, DIMMED);
  }

  #slice(startNs: number, endNs: number, top: number, height: number, family: Family, label: number): void {
    const context = this.#context;
    const view = this.#view;
    const left = Math.max(-8, view.x(startNs));
    // A pixel between neighbours.
    const width = Math.max(1, Math.min(view.width + 8, view.x(endNs)) - left - (height > 8 ? 1 : 0.5));
    const [fill, ink] = LOOKS[family][this.#theme];
    const isDimmed = view.found !== undefined && !view.found.has(label);
    if (isDimmed) context.globalAlpha = DIMMED;
    const [y, h] = [top + 1, Math.max(1, height - 2)];
    context.fillStyle = fill;
    context.fillRect(left, y, width, h);
    const pattern = this.#patterns.get(family);
    if (pattern && width >= LEAST_PATTERN && h > 4) {
      context.fillStyle = pattern;
      context.fillRect(left, y, width, h);
    }
    context.globalAlpha = 1;
    if (width >= LEAST_TEXT && h >= 11) {
      const from = Math.max(0, left);
      context.fillStyle = isDimmed ? CHROME[this.#theme].text : ink;
      this.text(
        view.model.texts[label]!,
        from + TEXT_PADDING,
        y + h / 2 + 0.5,
        left + width - from - 2 * TEXT_PADDING,
        pattern && !isDimmed ? fill : undefined,
      );
    }
  }

  /** An operation of which only one time is known: a triangle at it. */
  #mark(ns: number, top: number, height: number, family: Family): void {
    const context = this.#context;
    const x = this.#view.x(ns);
    context.fillStyle = LOOKS[family][this.#theme][0];
    context.beginPath();
    context.moveTo(x, top + height - 2);
    context.lineTo(x - 4, top + 3);
    context.lineTo(x + 4, top + 3);
    context.fill();
  }

  #gap(row: Row, fromNs: number, toNs: number, top: number, height: number): void {
    const view = this.#view;
    const [left, right] = [Math.max(0, view.x(fromNs)), Math.min(view.width, view.x(toNs))];
    if (right - left < LEAST_GAP_TEXT) return;
    const gap = view.model.gapAt(row, (fromNs + toNs) / 2);
    if (!gap || view.model.edgeText(gap) !== undefined) return;
    const why = view.model.explained(gap)?.reasons[0]?.reason;
    this.#context.fillStyle = CHROME[this.#theme].faint;
    const text = `gap of ${duration(gap.endNs - gap.startNs)}${why === undefined ? '' : `: ${why}`}`;
    this.text(text, left + TEXT_PADDING, top + height / 2, right - left - 2 * TEXT_PADDING, undefined, `italic 11px ${FONT}`);
  }

  /** With an ellipsis where it does not fit; on a plate of the slice's colour if a pattern would run through it. */
  text(text: string, x: number, y: number, most: number, plate?: string, font: string = `12px ${FONT}`): void {
    const context = this.#context;
    context.font = font;
    const key = `${font}${text}`;
    let width = this.#widths.get(key);
    if (width === undefined) this.#widths.set(key, (width = context.measureText(text).width));
    let shown = text;
    if (width > most) {
      const fitting = Math.floor((text.length * (most - 8)) / width);
      if (fitting < 2) return;
      shown = `${text.slice(0, fitting)}…`;
    }
    if (plate !== undefined) {
      const ink = context.fillStyle;
      context.fillStyle = plate;
      context.fillRect(x - 2, y - 7, Math.min(width, most) + 4, 13);
      context.fillStyle = ink;
    }
    context.fillText(shown, x, y);
  }

  /** How many operations were pending: the most of each column. */
  #strip(box: RowBox): void {
    const { pending } = box.row;
    if (!pending || pending.most === 0) return;
    const { times, counts, most } = pending;
    const view = this.#view;
    const { top, height } = stripOf(box);
    const scale = (height - 1) / Math.log2(most + 1);
    const context = this.#context;
    context.fillStyle = CHROME[this.#theme].strip;
    let [low, high] = [0, times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle]! > view.fromNs) high = middle;
      else low = middle + 1;
    }
    let at = low;
    let count = low > 0 ? counts[low - 1]! : 0;
    context.beginPath();
    let [from, drawn] = [0, count];
    const flush = (to: number): void => {
      if (drawn > 0) context.rect(from, top + height - Math.log2(drawn + 1) * scale, to - from, Math.log2(drawn + 1) * scale);
    };
    for (let x = 0; x < view.width; x++) {
      const until = view.ns(x + 1);
      let highest = count;
      while (at < times.length && times[at]! < until) {
        count = counts[at++]!;
        highest = Math.max(highest, count);
      }
      if (highest === drawn) continue;
      flush(x);
      [from, drawn] = [x, highest];
    }
    flush(view.width);
    context.fill();
  }
}
