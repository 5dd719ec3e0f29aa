// What part of the recording is seen, what is selected, and who wants to know of a change.
import type { Gap, Model, Place } from './model.js';

export type Selection =
  | { readonly kind: 'slice'; readonly place: Place }
  | { readonly kind: 'gap'; readonly gap: Gap }
  | { readonly kind: 'range'; readonly fromNs: number; readonly toNs: number };

/** The longest time for a pixel is the recording; this is the shortest. */
const LEAST_NS_PER_PX = 0.05;
/** So much of the recording's length is free at each end when all of it is seen. */
const MARGIN = 0.01;

export class View {
  readonly model: Model;
  fromNs = 0;
  toNs = 1;
  /** Of the rows' canvas, in CSS pixels. */
  width = 800;
  selection: Selection | undefined;
  /** Texts that the search found, by their numbers; undefined: no search. */
  found: ReadonlySet<number> | undefined;
  showsArrows = true;
  readonly #listeners: (() => void)[] = [];

  constructor(model: Model) {
    this.model = model;
    this.fit();
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  get nsPerPx(): number {
    return (this.toNs - this.fromNs) / this.width;
  }

  x(ns: number): number {
    return ((ns - this.fromNs) / (this.toNs - this.fromNs)) * this.width;
  }

  ns(x: number): number {
    return this.fromNs + x * this.nsPerPx;
  }

  /** Where a time is in the overview, which shows as much as `fit`. */
  overviewX(ns: number): number {
    const [fromNs, toNs] = this.limits;
    return ((ns - fromNs) / (toNs - fromNs)) * this.width;
  }

  overviewNs(x: number): number {
    const [fromNs, toNs] = this.limits;
    return fromNs + (x / this.width) * (toNs - fromNs);
  }

  get limits(): readonly [number, number] {
    const { startNs, endNs } = this.model;
    const margin = (endNs - startNs) * MARGIN;
    return [startNs - margin, endNs + margin];
  }

  fit(): void {
    [this.fromNs, this.toNs] = this.limits;
    this.changed();
  }

  /** Shows that part, as far as there is such. */
  show(fromNs: number, toNs: number): void {
    const [least, most] = this.limits;
    const length = Math.min(Math.max(toNs - fromNs, LEAST_NS_PER_PX * this.width), most - least);
    const middle = (fromNs + toNs) / 2;
    this.fromNs = Math.min(Math.max(least, middle - length / 2), most - length);
    this.toNs = this.fromNs + length;
    this.changed();
  }

  /** By a factor, below 1 to see more detail. The time at `x` stays where it is. */
  zoom(factor: number, x: number = this.width / 2): void {
    const at = this.ns(x);
    const length = (this.toNs - this.fromNs) * factor;
    const fromNs = at - (x / this.width) * length;
    this.show(fromNs, fromNs + length);
  }

  pan(px: number): void {
    const by = px * this.nsPerPx;
    this.show(this.fromNs + by, this.toNs + by);
  }

  /** Moves as little as it takes to see that time, and nearer to what is tiny if it may. */
  reveal(fromNs: number, toNs: number, mayZoom = true): void {
    const length = this.toNs - this.fromNs;
    const isSeen = toNs > this.fromNs + length * 0.02 && fromNs < this.toNs - length * 0.02;
    const isTiny = toNs - fromNs < this.nsPerPx * 3;
    if (isTiny && mayZoom) {
      const shown = Math.max((toNs - fromNs) * 20, this.nsPerPx * this.width * 0.05);
      this.show((fromNs + toNs - shown) / 2, (fromNs + toNs + shown) / 2);
    } else if (!isSeen) this.show((fromNs + toNs - length) / 2, (fromNs + toNs + length) / 2);
  }

  select(selection: Selection | undefined): void {
    this.selection = selection;
    this.changed();
  }

  /** The time of what is selected. */
  selectedTimes(): readonly [fromNs: number, toNs: number] | undefined {
    const { selection } = this;
    if (selection?.kind === 'slice') return this.model.timesOf(selection.place);
    if (selection?.kind === 'gap') return [selection.gap.startNs, selection.gap.endNs];
    return selection && [selection.fromNs, selection.toNs];
  }
}
