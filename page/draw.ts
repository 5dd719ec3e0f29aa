// The canvas of the rows: grid, rows, arrows, what is selected and the pointer's time; and the ruler with the overview above it.
import { type Axis, duration, ticks } from './format.js';
import { boxOf, type Layout, topOfLevel } from './layout.js';
import { RowPainter } from './draw-rows.js';
import { type Arrow, AWAIT, isSame, type Place } from './model.js';
import { CHROME, FAMILIES, LOOKS, type Theme } from './palette.js';
import type { View } from './view.js';

/** With more arrows in view than this, only those of the selected slice are drawn. */
const MOST_ARROWS = 150;
const TICK_PX = 92;
export const OVERVIEW = 34;
export const RULER = 24;
const FONT = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

function sized(canvas: HTMLCanvasElement, width: number, height: number, ratio: number): void {
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
}

export class Painter {
  readonly #view: View;
  readonly #rows: HTMLCanvasElement;
  readonly #top: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #topContext: CanvasRenderingContext2D;
  readonly #painter: RowPainter;
  #theme: Theme = 'light';
  #ratio = 1;
  #height = 100;
  #overview: HTMLCanvasElement | undefined;
  /** Where the pointer is. */
  pointerX: number | undefined;

  constructor(view: View, rows: HTMLCanvasElement, top: HTMLCanvasElement) {
    this.#view = view;
    this.#rows = rows;
    this.#top = top;
    this.#context = rows.getContext('2d', { alpha: false })!;
    this.#topContext = top.getContext('2d', { alpha: false })!;
    this.#painter = new RowPainter(this.#context, view);
  }

  prepare(theme: Theme, width: number, height: number): void {
    this.#theme = theme;
    this.#ratio = devicePixelRatio;
    this.#view.width = width;
    this.#height = height;
    sized(this.#rows, width, height, this.#ratio);
    sized(this.#top, width, OVERVIEW + RULER, this.#ratio);
    this.#painter.prepare(theme, this.#ratio);
    this.#overview = this.#drawOverview();
  }

  draw(layout: Layout, scrollTop: number): Axis {
    const view = this.#view;
    const context = this.#context;
    const { back, grid, accent } = CHROME[this.#theme];
    const axis = ticks(view.fromNs, view.toNs, TICK_PX * view.nsPerPx);
    context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    context.fillStyle = back;
    context.fillRect(0, 0, view.width, this.#height);
    context.fillStyle = grid;
    for (const ns of axis.at) context.fillRect(Math.round(view.x(ns)), 0, 1, this.#height);
    context.translate(0, -scrollTop);
    this.#painter.draw(layout, scrollTop, this.#height);
    if (view.showsArrows) this.#arrows(layout, scrollTop);
    this.#selection(layout, scrollTop);
    if (this.pointerX !== undefined) {
      context.fillStyle = accent;
      context.globalAlpha = 0.6;
      context.fillRect(Math.round(this.pointerX), scrollTop, 1, this.#height);
      context.globalAlpha = 1;
    }
    this.#drawTop(axis);
    return axis;
  }

  #drawTop(axis: Axis): void {
    const view = this.#view;
    const context = this.#topContext;
    const { back, line, text, faint, accent } = CHROME[this.#theme];
    context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    context.fillStyle = back;
    context.fillRect(0, 0, view.width, OVERVIEW + RULER);
    if (this.#overview) context.drawImage(this.#overview, 0, 0, view.width, OVERVIEW);
    const [from, to] = this.overviewWindow();
    context.fillStyle = back;
    context.globalAlpha = 0.6;
    context.fillRect(0, 0, from, OVERVIEW);
    context.fillRect(to, 0, view.width - to, OVERVIEW);
    context.globalAlpha = 1;
    context.strokeStyle = accent;
    context.lineWidth = 2;
    context.strokeRect(from + 1, 1, Math.max(1, to - from - 2), OVERVIEW - 2);
    context.fillStyle = line;
    context.fillRect(0, OVERVIEW + RULER - 1, view.width, 1);
    context.font = FONT;
    context.textBaseline = 'middle';
    for (const ns of axis.at) {
      const x = Math.round(view.x(ns));
      context.fillStyle = faint;
      context.fillRect(x, OVERVIEW + RULER - 7, 1, 7);
      const label = axis.text(ns);
      if (x + 4 + context.measureText(label).width > view.width) continue;
      context.fillStyle = text;
      context.fillText(label, x + 4, OVERVIEW + RULER / 2);
    }
  }

  /** Where the view is in the overview. */
  overviewWindow(): readonly [number, number] {
    const { fromNs, toNs } = this.#view;
    return [this.#view.overviewX(fromNs), this.#view.overviewX(toNs)];
  }

  /** How many streams ran something of each family, on average, in each column of the whole recording. */
  #drawOverview(): HTMLCanvasElement {
    const { model, width } = this.#view;
    const canvas = document.createElement('canvas');
    sized(canvas, width, OVERVIEW, this.#ratio);
    const context = canvas.getContext('2d')!;
    context.scale(this.#ratio, this.#ratio);
    context.fillStyle = CHROME[this.#theme].band;
    context.fillRect(0, 0, width, OVERVIEW);
    const columns = Math.max(1, Math.ceil(width / 2));
    const [fromNs, toNs] = this.#view.limits;
    const columnNs = ((toNs - fromNs) / width) * 2;
    const sums = Object.fromEntries(FAMILIES.map((family) => [family, new Float32Array(columns)]));
    const streams = model.rows.filter(({ isStream }) => isStream);
    for (const { levels } of streams.length > 0 ? streams : model.rows) {
      const { count, starts, ends, families } = levels[0]!;
      for (let at = 0; at < count; at++) {
        if (families[at] === 'wait') continue;
        const [start, end] = [starts[at]! - fromNs, ends[at]! - fromNs];
        for (let column = Math.max(0, Math.floor(start / columnNs)); column < columns && column * columnNs < end; column++)
          sums[families[at]!]![column]! += (Math.min(end, (column + 1) * columnNs) - Math.max(start, column * columnNs)) / columnNs;
      }
    }
    let most = Number.MIN_VALUE;
    for (let column = 0; column < columns; column++)
      most = Math.max(
        most,
        FAMILIES.reduce((sum, family) => sum + sums[family]![column]!, 0),
      );
    for (let column = 0; column < columns; column++) {
      let y = OVERVIEW;
      for (const family of FAMILIES) {
        const height = (sums[family]![column]! / most) * (OVERVIEW - 4);
        context.fillStyle = LOOKS[family][this.#theme][0];
        context.fillRect(column * 2, y - height, 2, height);
        y -= height;
      }
    }
    return canvas;
  }

  #arrows(layout: Layout, scrollTop: number): void {
    const view = this.#view;
    const seen = view.model.arrows.filter(
      ({ fromNs, toNs }) => Math.max(fromNs, toNs) >= view.fromNs && Math.min(fromNs, toNs) <= view.toNs,
    );
    const { selection } = view;
    const own = (place: Place): boolean => selection?.kind === 'slice' && isSame(selection.place, place);
    // Waits of the thread are many, and their rows tell what they are.
    const most = seen.filter(({ cause }) => cause !== AWAIT).length;
    const { faint, accent, back } = CHROME[this.#theme];
    for (const arrow of seen) {
      const isOwn = own(arrow.from) || own(arrow.to);
      if (!isOwn && (most > MOST_ARROWS || arrow.cause === AWAIT)) continue;
      this.#arrow(layout, scrollTop, arrow, back, isOwn ? 5 : 3.5);
      this.#arrow(layout, scrollTop, arrow, isOwn ? accent : faint, isOwn ? 2.5 : 1.2);
    }
  }

  #arrow(layout: Layout, scrollTop: number, { from, to, fromNs, toNs }: Arrow, colour: string, width: number): void {
    const [source, target] = [boxOf(layout, from), boxOf(layout, to)];
    if (!source || !target) return;
    const [x, y] = [this.#view.x(fromNs), topOfLevel(source, from.level) + source.levelHeight / 2];
    const [toX, toY] = [this.#view.x(toNs), topOfLevel(target, to.level) + target.levelHeight / 2];
    if (Math.max(y, toY) < scrollTop || Math.min(y, toY) > scrollTop + this.#height) return;
    const bend = Math.max(5, Math.min(60, Math.abs(toX - x) / 2));
    const context = this.#context;
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(x, y);
    context.bezierCurveTo(x + bend, y, toX - bend, toY, toX - 5, toY);
    context.stroke();
    context.beginPath();
    context.moveTo(toX, toY);
    context.lineTo(toX - 7, toY - 4 - width / 3);
    context.lineTo(toX - 7, toY + 4 + width / 3);
    context.fill();
  }

  #selection(layout: Layout, scrollTop: number): void {
    const view = this.#view;
    const times = view.selectedTimes();
    const { selection } = view;
    if (!times || !selection) return;
    const context = this.#context;
    const { accent, text, back } = CHROME[this.#theme];
    const [left, right] = [view.x(times[0]), view.x(times[1])];
    if (selection.kind === 'range') {
      context.fillStyle = accent;
      context.globalAlpha = 0.16;
      context.fillRect(left, scrollTop, right - left, this.#height);
      context.globalAlpha = 1;
      context.fillRect(left, scrollTop, 1, this.#height);
      context.fillRect(right, scrollTop, 1, this.#height);
      const label = duration(times[1] - times[0]);
      context.font = FONT;
      const width = context.measureText(label).width + 10;
      const x = Math.min(Math.max(2, (left + right - width) / 2), view.width - width - 2);
      context.fillRect(x, scrollTop + 3, width, 16);
      context.fillStyle = back;
      context.textBaseline = 'middle';
      context.fillText(label, x + 5, scrollTop + 11.5);
      return;
    }
    const place = selection.kind === 'slice' ? selection.place : { row: selection.gap.row, level: 0 };
    const box = boxOf(layout, place);
    if (!box) return;
    const width = Math.max(3, right - left);
    const y = topOfLevel(box, place.level);
    context.lineWidth = 2;
    context.setLineDash(selection.kind === 'gap' ? [5, 4] : []);
    context.strokeStyle = back;
    context.strokeRect(left - 2, y - 1, width + 3, box.levelHeight + 2);
    context.strokeStyle = selection.kind === 'gap' ? accent : text;
    context.strokeRect(left - 1, y, width + 1, box.levelHeight);
    context.setLineDash([]);
  }
}
