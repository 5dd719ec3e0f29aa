// Search of labels: which slices have them, in the order of their times.
import { find } from './dom.js';
import { whole } from './format.js';
import type { Model, Place } from './model.js';
import type { View } from './view.js';

export class Search {
  readonly #view: View;
  readonly #model: Model;
  readonly #goTo: (place: Place) => void;
  readonly #input = find('input', 'query');
  readonly #output = find('output', 'hits');
  #places: readonly Place[] = [];
  #at = -1;

  constructor(view: View, goTo: (place: Place) => void) {
    this.#view = view;
    this.#model = view.model;
    this.#goTo = goTo;
    this.#input.addEventListener('input', () => this.#search());
    find('form', 'search').addEventListener('submit', (event) => event.preventDefault());
    this.#input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.next(event.shiftKey ? -1 : 1);
      if (event.key === 'Escape') {
        this.set('');
        document.getElementById('timeline')?.focus();
      }
    });
    find('button', 'previous').addEventListener('click', () => this.next(-1));
    find('button', 'next').addEventListener('click', () => this.next(1));
  }

  focus(): void {
    this.#input.focus();
    this.#input.select();
  }

  set(query: string): void {
    this.#input.value = query;
    this.#search();
  }

  next(by: number): void {
    const { length } = this.#places;
    if (length === 0) return;
    this.#at = this.#at < 0 ? (by > 0 ? this.#firstInView() : length - 1) : (this.#at + by + length) % length;
    this.#tell();
    this.#goTo(this.#places[this.#at]!);
  }

  #firstInView(): number {
    const at = this.#places.findIndex((place) => this.#model.timesOf(place)[0] >= this.#view.fromNs);
    return Math.max(0, at);
  }

  #search(): void {
    const query = this.#input.value.trim().toLowerCase();
    this.#at = -1;
    if (query === '') {
      this.#places = [];
      this.#view.found = undefined;
    } else {
      const found = new Set(this.#model.texts.flatMap((text, at) => (text.toLowerCase().includes(query) ? [at] : [])));
      const places: Place[] = [];
      for (const { index: row, levels } of this.#model.rows)
        for (const [level, { labels }] of levels.entries())
          for (const [at, label] of labels.entries()) if (found.has(label)) places.push({ row, level, at });
      const startOf = ({ row, level, at }: Place): number => this.#model.rows[row]!.levels[level]!.starts[at]!;
      this.#places = places.toSorted((a, b) => startOf(a) - startOf(b));
      this.#view.found = found;
    }
    this.#tell();
    this.#view.changed();
  }

  #tell(): void {
    const { length } = this.#places;
    const text = this.#at < 0 ? `${whole(length)} found` : `${whole(this.#at + 1)} of ${whole(length)}`;
    this.#output.value = this.#input.value.trim() === '' ? '' : text;
  }
}
