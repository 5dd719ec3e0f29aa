// Wheel, pointer and keys on the rows, the ruler and the overview.
import { boxAt, boxOf, type Layout, topOfLevel } from './layout.js';
import type { Painter } from './draw.js';
import { OVERVIEW } from './draw.js';
import type { Gap, Place } from './model.js';
import type { View } from './view.js';

const WHEEL = 0.0016;
const KEY_ZOOM = 0.75;
const KEY_PAN = 0.12;
/** A pointer that moves less was a click. */
const CLICK_PX = 4;
/** A slice that is so narrow is found beside the pointer, too. */
const NEAR_PX = 3;
/** Keys that scroll, choose a tab or move the splitter. */
const MOVES = /^(Arrow|Home|End)/;

export interface Surface {
  readonly rows: HTMLCanvasElement;
  readonly top: HTMLCanvasElement;
  readonly scroller: HTMLElement;
  readonly timeline: HTMLElement;
  layout(): Layout;
  onHover(place: Place | Gap | undefined, x: number, y: number): void;
  onFollow(isForward: boolean): void;
  onSearch(): void;
  onNext(by: number): void;
  onHelp(): void;
  /** There is nothing to move to. */
  onNothing(text: string): void;
}

export class Input {
  readonly #view: View;
  readonly #painter: Painter;
  readonly #surface: Surface;

  constructor(view: View, painter: Painter, surface: Surface) {
    this.#view = view;
    this.#painter = painter;
    this.#surface = surface;
    const { rows, top } = surface;
    for (const canvas of [rows, top]) canvas.addEventListener('wheel', this.#wheel, { passive: false });
    rows.addEventListener('pointerdown', (event) => this.#drag(event, event.shiftKey ? 'range' : 'pan'));
    top.addEventListener('pointerdown', (event) => this.#drag(event, event.offsetY < OVERVIEW ? 'overview' : 'range'));
    rows.addEventListener('pointermove', ({ offsetX, offsetY }) => this.#hover(offsetX, offsetY));
    rows.addEventListener('pointerleave', () => {
      this.#painter.pointerX = undefined;
      surface.onHover(undefined, 0, 0);
      view.changed();
    });
    rows.addEventListener('dblclick', () => this.#fitSelection());
    document.addEventListener('keydown', this.#key);
  }

  readonly #wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const view = this.#view;
    const size = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const [x, y] = [event.deltaX * size, event.deltaY * size];
    if (Math.abs(x) > Math.abs(y)) view.pan(x);
    else if (event.shiftKey) view.pan(y);
    else if (event.altKey) this.#surface.scroller.scrollTop += y;
    else view.zoom(Math.exp(Math.max(-240, Math.min(240, y)) * WHEEL), event.offsetX);
  };

  #drag(down: PointerEvent, kind: 'pan' | 'range' | 'overview'): void {
    if (down.button !== 0) return;
    const view = this.#view;
    const canvas = down.target as HTMLCanvasElement;
    canvas.setPointerCapture(down.pointerId);
    this.#surface.timeline.focus({ preventScroll: true });
    const { scroller } = this.#surface;
    const startNs = view.ns(down.offsetX);
    const startTop = scroller.scrollTop;
    const [fromNs, toNs] = [view.fromNs, view.toNs];
    let hasMoved = false;
    const move = (event: PointerEvent): void => {
      hasMoved ||= Math.hypot(event.offsetX - down.offsetX, event.offsetY - down.offsetY) >= CLICK_PX;
      if (kind === 'overview') this.#showAround(event.offsetX);
      else if (!hasMoved) return;
      else if (kind === 'pan') {
        const by = ((down.offsetX - event.offsetX) * (toNs - fromNs)) / view.width;
        scroller.scrollTop = startTop + down.offsetY - event.offsetY;
        view.show(fromNs + by, toNs + by);
      } else {
        const ns = view.ns(Math.max(0, Math.min(view.width, event.offsetX)));
        view.select({ kind: 'range', fromNs: Math.min(startNs, ns), toNs: Math.max(startNs, ns) });
      }
    };
    const up = (event: PointerEvent): void => {
      canvas.removeEventListener('pointermove', move);
      if (hasMoved || kind === 'overview') move(event);
      else if (canvas === this.#surface.rows) this.#click(event.offsetX, event.offsetY);
    };
    canvas.addEventListener('pointermove', move);
    canvas.addEventListener('pointerup', up, { once: true });
    canvas.addEventListener('pointercancel', () => canvas.removeEventListener('pointermove', move), { once: true });
    if (kind === 'overview') this.#showAround(down.offsetX);
  }

  #showAround(x: number): void {
    const { fromNs, toNs } = this.#view;
    const ns = this.#view.overviewNs(x);
    this.#view.show(ns - (toNs - fromNs) / 2, ns + (toNs - fromNs) / 2);
  }

  /** The slice or the gap there. */
  #at(x: number, y: number): Place | Gap | undefined {
    const view = this.#view;
    const fromTop = y + this.#surface.scroller.scrollTop;
    const box = boxAt(this.#surface.layout(), fromTop);
    if (!box) return undefined;
    const level = Math.min(box.row.levels.length - 1, Math.floor((fromTop - topOfLevel(box, 0)) / box.levelHeight));
    const slices = box.row.levels[level];
    if (!slices) return undefined;
    const ns = view.ns(x);
    const near = NEAR_PX * view.nsPerPx;
    let best: number | undefined;
    let bestNs = near;
    for (let at = Math.max(0, slices.firstAfter(ns - near) - 1); at < slices.count && slices.starts[at]! <= ns + near; at++) {
      const away = Math.max(slices.starts[at]! - ns, ns - slices.ends[at]!, 0);
      if (away > bestNs || (away === bestNs && best !== undefined)) continue;
      [best, bestNs] = [at, away];
      if (away === 0) break;
    }
    if (best !== undefined) return { row: box.row.index, level, at: best };
    return view.model.gapAt(box.row, ns);
  }

  #hover(x: number, y: number): void {
    this.#painter.pointerX = x;
    this.#surface.onHover(this.#at(x, y), x, y);
    this.#view.changed();
  }

  #click(x: number, y: number): void {
    const found = this.#at(x, y);
    if (found === undefined) this.#view.select(undefined);
    else this.#view.select('at' in found ? { kind: 'slice', place: found } : { kind: 'gap', gap: found });
  }

  #fitSelection(): void {
    const times = this.#view.selectedTimes();
    if (!times) return;
    const around = Math.max(1, (times[1] - times[0]) * 0.25);
    this.#view.show(times[0] - around, times[1] + around);
  }

  /** The slice before or after the selected one in its row; without one, the first in view. */
  #step(by: number): void {
    const view = this.#view;
    const { selection, model } = view;
    if (selection?.kind === 'slice') {
      const { row, level, at } = selection.place;
      const count = model.rows[row]!.levels[level]!.count;
      if (at + by < 0 || at + by >= count) this.#surface.onNothing(`Nothing is ${by < 0 ? 'before' : 'after'} it in this row.`);
      else this.#select({ row, level, at: at + by });
      return;
    }
    if (selection?.kind === 'gap') {
      const at = by > 0 ? selection.gap.after : selection.gap.before;
      if (at === undefined) this.#surface.onNothing(`Nothing is ${by < 0 ? 'before' : 'after'} it in this row.`);
      else this.#select({ row: selection.gap.row, level: 0, at });
      return;
    }
    const row = this.#surface.layout().boxes[0]?.row;
    const level = row?.levels[0];
    if (row && level) this.#select({ row: row.index, level: 0, at: Math.min(level.count - 1, level.firstAfter(view.fromNs)) });
  }

  /** The slice of the row below or above at the same time. */
  #changeRow(by: number): void {
    const view = this.#view;
    const times = view.selectedTimes();
    const { boxes } = this.#surface.layout();
    const { selection } = view;
    const row = selection?.kind === 'slice' ? selection.place.row : selection?.kind === 'gap' ? selection.gap.row : undefined;
    if (row === undefined || !times) return this.#step(1);
    const next = boxes[boxes.findIndex((box) => box.row.index === row) + by]?.row;
    const level = next?.levels[0];
    if (next && level) this.#select({ row: next.index, level: 0, at: Math.min(level.count - 1, level.firstAfter(times[0])) });
  }

  /** Without a change of the zoom, so that steps can be followed. */
  #select(place: Place): void {
    this.goTo(place, false);
  }

  /** Selects it, and moves there as little as it takes. */
  goTo(place: Place, mayZoom = true): void {
    const [startNs, endNs] = this.#view.model.timesOf(place);
    this.#view.reveal(startNs, endNs, mayZoom);
    this.scrollTo(place);
    this.#view.select({ kind: 'slice', place });
  }

  scrollTo(place: Pick<Place, 'row'>): void {
    const box = boxOf(this.#surface.layout(), place);
    const { scroller } = this.#surface;
    if (box && (box.top < scroller.scrollTop || box.top + box.height > scroller.scrollTop + scroller.clientHeight))
      scroller.scrollTop = box.top - scroller.clientHeight / 2;
  }

  readonly #key = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // Whatever has the focus, but for what takes these keys itself.
    const focused = event.target instanceof Element ? event.target : document.body;
    if (focused.closest('#query, dialog') !== null) return;
    if (MOVES.test(event.key) && focused.closest('#panel, #splitter') !== null) return;
    const view = this.#view;
    const { scroller } = this.#surface;
    const actions: Readonly<Record<string, () => void>> = {
      w: () => view.zoom(KEY_ZOOM, this.#pointerX()),
      s: () => view.zoom(1 / KEY_ZOOM, this.#pointerX()),
      '+': () => view.zoom(KEY_ZOOM),
      '=': () => view.zoom(KEY_ZOOM),
      '-': () => view.zoom(1 / KEY_ZOOM),
      a: () => view.pan(-KEY_PAN * view.width),
      d: () => view.pan(KEY_PAN * view.width),
      arrowleft: () => view.pan(-KEY_PAN * view.width),
      arrowright: () => view.pan(KEY_PAN * view.width),
      arrowup: () => (scroller.scrollTop -= 48),
      arrowdown: () => (scroller.scrollTop += 48),
      f: () => this.#fitSelection(),
      '0': () => view.fit(),
      home: () => view.show(view.model.startNs, view.model.startNs + view.toNs - view.fromNs),
      end: () => view.show(view.model.endNs - view.toNs + view.fromNs, view.model.endNs),
      ',': () => this.#step(-1),
      '.': () => this.#step(1),
      j: () => this.#changeRow(1),
      k: () => this.#changeRow(-1),
      '[': () => this.#surface.onFollow(false),
      ']': () => this.#surface.onFollow(true),
      '/': () => this.#surface.onSearch(),
      n: () => this.#surface.onNext(event.shiftKey ? -1 : 1),
      '?': () => this.#surface.onHelp(),
      escape: () => view.select(undefined),
    };
    const action = actions[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    action();
  };

  #pointerX(): number {
    return this.#painter.pointerX ?? this.#view.width / 2;
  }
}
