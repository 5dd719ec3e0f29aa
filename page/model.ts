// The data of the page, in the form that drawing and searching need.
import type { PageData, PageGap, PageRow, PageSlices } from '../src/recording/page-data.js';
import { isWork } from '../src/recording/recorded-streams.js';
import { moment } from './format.js';
import { type Family, familyOf } from './palette.js';

/** Slices that do not overlap, in their order, in nanoseconds. */
export class Level {
  readonly count: number;
  readonly starts: Float64Array;
  /** Of a slice whose end is not known, its start. */
  readonly ends: Float64Array;
  readonly labels: readonly number[];
  readonly kinds: readonly number[];
  readonly families: readonly Family[];
  /** Of kernels, copies, fills and graphs. */
  readonly #work: readonly boolean[];
  readonly #isKnown: (at: number) => boolean;

  constructor({ starts, lengths, labels, kinds }: PageSlices, texts: readonly string[]) {
    this.count = starts.length;
    this.starts = sums(starts);
    this.ends = Float64Array.from(lengths, (length, at) => this.starts[at]! + Math.max(0, length));
    this.labels = labels;
    this.kinds = kinds;
    const families = texts.map(familyOf);
    this.families = kinds.map((kind) => families[kind]!);
    const work = texts.map((kind) => isWork({ kind }));
    this.#work = kinds.map((kind) => work[kind]!);
    this.#isKnown = (at) => lengths[at]! >= 0;
  }

  /** Whether it is known when it ran. */
  isKnown(at: number): boolean {
    return this.#isKnown(at);
  }

  /** Whether the device worked. */
  isWork(at: number): boolean {
    return this.#work[at]!;
  }

  /** -1 if there is none. */
  get lastWork(): number {
    return this.#work.lastIndexOf(true);
  }

  /** The first slice that ends after `ns`; `count` if there is none. */
  firstAfter(ns: number): number {
    let [low, high] = [0, this.count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle]! > ns) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** One operation of a stream, as the details show it. */
export interface OperationFacts {
  readonly ticket: number;
  readonly id: number | null;
  readonly bytes: number | null;
  readonly submittedNs: number | undefined;
  readonly issuedNs: number | undefined;
  readonly direction: string | undefined;
  readonly isPageable: boolean | null;
  readonly threads: number | null;
  /** The place of the call. */
  readonly site: string | undefined;
  readonly timedTogether: number | null;
  readonly parked: readonly { readonly reason: string; readonly fromNs: number }[];
}

/** A slice: its row, its level and its place there. */
export interface Place {
  readonly row: number;
  readonly level: number;
  readonly at: number;
}

/** The cause of an arrow to a wait of the thread. */
export const AWAIT = 'await';
/** Shorter times without work are no gaps, as of `recording.gaps`. */
const LEAST_GAP_NS = 20_000;

export function isSame(a: Place, b: Place): boolean {
  return a.row === b.row && a.level === b.level && a.at === b.at;
}

/** A time between two slices of a stream. */
export interface Gap {
  readonly row: number;
  readonly startNs: number;
  readonly endNs: number;
  /** The slices before and after, if there are any. */
  readonly before: number | undefined;
  readonly after: number | undefined;
}

export interface Arrow {
  readonly from: Place;
  readonly to: Place;
  readonly fromNs: number;
  readonly toNs: number;
  readonly cause: string;
}

export class Row {
  readonly index: number;
  readonly group: string;
  readonly name: string;
  readonly levels: readonly Level[];
  readonly isStream: boolean;
  /** How many operations were submitted and had not ended: from each time on. */
  readonly pending: { readonly times: Float64Array; readonly counts: Float64Array; readonly most: number } | undefined;
  /** Time in which the device worked for it. */
  readonly busyNs: number;
  readonly #data: PageRow;
  readonly #texts: readonly string[];

  constructor(data: PageRow, index: number, texts: readonly string[]) {
    this.#data = data;
    this.#texts = texts;
    this.index = index;
    this.group = data.group;
    this.name = data.name;
    this.levels = data.levels.map((slices) => new Level(slices, texts));
    this.isStream = data.levels[0]?.operations !== undefined;
    const [level] = this.levels;
    let busyNs = 0;
    if (level) for (let at = 0; at < level.count; at++) if (level.isWork(at)) busyNs += level.ends[at]! - level.starts[at]!;
    this.busyNs = busyNs;
    this.pending = this.isStream && level ? pendingOf(level, data.levels[0]!.operations!.submitted) : undefined;
  }

  facts(at: number): OperationFacts | undefined {
    const { operations } = this.#data.levels[0]!;
    const startNs = this.levels[0]?.starts[at];
    if (!operations || startNs === undefined) return undefined;
    const before = (by: number | null | undefined): number | undefined => (by === null || by === undefined ? undefined : startNs - by);
    const textOf = (text: number | null | undefined): string | undefined => (typeof text === 'number' ? this.#texts[text] : undefined);
    let ticket = 0;
    for (let n = 0; n <= at; n++) ticket += operations.tickets[n]!;
    return {
      ticket,
      id: operations.ids[at] ?? null,
      bytes: operations.bytes[at] ?? null,
      direction: textOf(operations.directions[at]),
      isPageable: operations.pageable[at] ?? null,
      threads: operations.threads[at] ?? null,
      site: textOf(operations.sites[at]),
      timedTogether: operations.timedTogether[at] ?? null,
      submittedNs: before(operations.submitted[at]),
      issuedNs: before(operations.issued[at]),
      parked: operations.parked.filter(([own]) => own === at).map(([, reason, fromNs]) => ({ reason: this.#texts[reason]!, fromNs })),
    };
  }

  /** When its first operation was submitted, or began if that is not known. */
  get calledNs(): number {
    const beganNs = this.levels[0]?.starts[0] ?? Infinity;
    return Math.min(beganNs, this.facts(0)?.submittedNs ?? beganNs);
  }

  bytesOf(at: number): number {
    return this.#data.levels[0]?.operations?.bytes[at] ?? 0;
  }

  /** The gap of a stream at that time, or nothing if an operation runs. */
  gapAt(ns: number, fromNs: number, toNs: number): Gap | undefined {
    const [level] = this.levels;
    if (!this.isStream || !level) return undefined;
    const after = level.firstAfter(ns);
    if (after < level.count && level.starts[after]! <= ns) return undefined;
    // What did not end, as far as is known, may still run.
    if (after > 0 && !level.isKnown(after - 1)) return undefined;
    const startNs = after > 0 ? level.ends[after - 1]! : fromNs;
    const endNs = after < level.count ? level.starts[after]! : toNs;
    if (endNs <= startNs) return undefined;
    return {
      row: this.index,
      startNs,
      endNs,
      before: after > 0 ? after - 1 : undefined,
      after: after < level.count ? after : undefined,
    };
  }
}

export class Model {
  readonly texts: readonly string[];
  readonly rows: readonly Row[];
  readonly arrows: readonly Arrow[];
  readonly startNs: number;
  readonly endNs: number;
  readonly count: number;
  readonly data: PageData;
  readonly #gaps: Map<number, readonly PageGap[]> = new Map();

  constructor(data: PageData) {
    this.data = data;
    this.texts = data.texts;
    this.rows = data.rows.map((row, index) => new Row(row, index, data.texts));
    let [startNs, endNs] = [data.startNs, data.endNs];
    for (const { levels } of this.rows)
      for (const { count, starts, ends } of levels) {
        if (count === 0) continue;
        startNs = Math.min(startNs, starts[0]!);
        endNs = Math.max(endNs, ends[count - 1]!);
      }
    this.startNs = startNs;
    this.endNs = Math.max(endNs, startNs + 1);
    this.count = this.rows.reduce((sum, { levels }) => sum + levels.reduce((own, { count }) => own + count, 0), 0);
    this.arrows = this.#arrows();
    for (const gap of data.gaps) this.#gaps.set(gap.row, [...(this.#gaps.get(gap.row) ?? []), gap]);
  }

  labelOf({ row, level, at }: Place): string {
    return this.texts[this.rows[row]!.levels[level]!.labels[at]!]!;
  }

  kindOf({ row, level, at }: Place): string {
    return this.texts[this.rows[row]!.levels[level]!.kinds[at]!]!;
  }

  timesOf({ row, level, at }: Place): readonly [startNs: number, endNs: number] {
    const { starts, ends } = this.rows[row]!.levels[level]!;
    return [starts[at]!, ends[at]!];
  }

  /** Why a gap was, if the recording explains it. */
  explained({ row, startNs, endNs }: Gap): PageGap | undefined {
    const gaps = this.#gaps.get(row) ?? [];
    const middle = (startNs + endNs) / 2;
    // The time before the first operation is explained from its call on.
    return (
      gaps.find((gap) => gap.startNs <= middle && middle <= gap.endNs) ?? gaps.find((gap) => startNs <= gap.startNs && gap.endNs <= endNs)
    );
  }

  /** The gap of a stream at that time: as the recording explains it, from one work of the device to the next. */
  gapAt(row: Row, ns: number): Gap | undefined {
    const gap = row.gapAt(ns, this.startNs, this.endNs);
    const own = this.#gaps.get(row.index) ?? [];
    const explained = gap && own.find(({ startNs, endNs }) => startNs <= ns && ns <= endNs);
    if (!gap || explained) return explained && this.#between(explained);
    if (gap.before === undefined) return ns < row.calledNs ? { ...gap, endNs: Math.min(gap.endNs, row.calledNs) } : gap;
    const level = row.levels[0]!;
    // What came after it was no work.
    const { lastWork } = level;
    return lastWork < 0 || gap.before < lastWork
      ? gap
      : { row: row.index, startNs: level.ends[lastWork]!, endNs: this.endNs, before: lastWork, after: undefined };
  }

  /** Of the time before the first or after the last operation of a stream: that nothing was submitted. */
  edgeText({ row, startNs, before, after }: Gap): string | undefined {
    const { levels, calledNs } = this.rows[row]!;
    const [level] = levels;
    if (after === undefined && before === level!.count - 1) return 'Nothing was submitted to it after that.';
    if (before !== undefined && before >= level!.lastWork) return 'No kernel, copy, fill or graph was submitted to it after that.';
    if (before !== undefined || startNs >= calledNs) return undefined;
    const start = this.data.dropped > 0 ? 'The recording has nothing of it' : 'Nothing was submitted to it';
    return `${start} before ${moment(calledNs)}.`;
  }

  /** The longest gaps, with their neighbours, and what streams did not do before their first and after their last operation. */
  gaps(): Gap[] {
    return [...this.#explainedGaps(), ...this.#edges()];
  }

  #edges(): Gap[] {
    const { startNs, endNs } = this;
    return this.rows.flatMap(({ index: row, levels: [level], isStream, calledNs }) => {
      if (!isStream || !level || level.count === 0) return [];
      const { lastWork } = level;
      const last = lastWork < 0 ? level.count - 1 : lastWork;
      const first = { row, startNs, endNs: calledNs, before: undefined, after: 0 };
      const rest = { row, startNs: level.ends[last]!, endNs, before: last, after: undefined };
      return [first, ...(level.isKnown(last) ? [rest] : [])].filter((gap) => gap.endNs - gap.startNs >= LEAST_GAP_NS);
    });
  }

  #explainedGaps(): Gap[] {
    return this.data.gaps.map((gap) => this.#between(gap));
  }

  #between({ row, startNs, endNs }: PageGap): Gap {
    const level = this.rows[row]!.levels[0]!;
    const after = level.firstAfter(endNs);
    let before = level.firstAfter(startNs) - 1;
    while (before >= 0 && !level.isWork(before)) before--;
    return { row, startNs, endNs, before: before < 0 ? undefined : before, after: after < level.count ? after : undefined };
  }

  #arrows(): Arrow[] {
    const arrows: Arrow[] = [];
    for (const { index, levels } of this.rows) {
      for (const [at, row, other, cause] of this.data.rows[index]!.levels[0]?.operations?.after ?? []) {
        const from = { row, level: 0, at: other };
        arrows.push({
          from,
          to: { row: index, level: 0, at },
          fromNs: this.timesOf(from)[1],
          toNs: levels[0]!.ends[at]!,
          cause: this.texts[cause]!,
        });
      }
      for (const [level, { awaited = [] }] of this.data.rows[index]!.levels.entries())
        for (const [at, row, other] of awaited) {
          const from = { row, level: 0, at: other };
          const to = { row: index, level, at };
          arrows.push({ from, to, fromNs: this.timesOf(from)[1], toNs: this.timesOf(to)[1], cause: AWAIT });
        }
    }
    return arrows.toSorted((a, b) => a.toNs - b.toNs);
  }
}

function sums(deltas: readonly number[]): Float64Array {
  const values = new Float64Array(deltas.length);
  let sum = 0;
  for (const [at, delta] of deltas.entries()) values[at] = sum += delta;
  return values;
}

function pendingOf(level: Level, submitted: readonly (number | null)[]): Row['pending'] {
  const begins = Float64Array.from(submitted, (before, at) => level.starts[at]! - (before ?? 0)).toSorted();
  const { ends, count } = level;
  const times = new Float64Array(2 * count);
  const counts = new Float64Array(2 * count);
  let [begun, ended, most] = [0, 0, 0];
  for (let n = 0; n < 2 * count; n++) {
    const isBegin = begun < count && begins[begun]! <= ends[ended]!;
    times[n] = isBegin ? begins[begun++]! : ends[ended++]!;
    counts[n] = begun - ended;
    most = Math.max(most, begun - ended);
  }
  return { times, counts, most };
}
