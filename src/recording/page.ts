// A recording as a page that shows it: one file of HTML, which the build made from page/, with the data in it.
import { readFileSync } from 'node:fs';
import { deflateRawSync } from 'node:zlib';
import type { Explanation, Gap, RecordingSummary } from './explained.js';
import type { PageCost, PageData, PageGap, PageOperations, PageReason, PageRow, PageSlices } from './page-data.js';
import type { RecordedOperation, RecordedSpan } from './recorded.js';
import { earliestMs, grouped, HOST, pointOf, type Recorded, rowOfSpan, runsOf, streamKeyOf } from './rows.js';

export interface RecordedPage extends Recorded {
  readonly dropped: number;
  gaps(): readonly Gap[];
  summary(): RecordingSummary;
}

/** Of more gaps, the longest are in the page. */
const MOST_GAPS = 2000;

/** Numbers for texts. */
class Texts {
  readonly list: string[] = [];
  readonly #numbers: Map<string, number> = new Map();

  of(text: string): number {
    let number = this.#numbers.get(text);
    if (number === undefined) {
      this.#numbers.set(text, (number = this.list.length));
      this.list.push(text);
    }
    return number;
  }
}

interface Shown {
  readonly kind: string;
  readonly label: string;
  readonly startMs: number;
  /** None: only the start is known. */
  readonly endMs?: number;
}

interface ShownSpan extends Shown {
  readonly awaited: RecordedSpan['awaited'];
}

/** Where operations are, by `pointOf`. */
type Places = Map<string, readonly [row: number, at: number]>;

class PageBuilder {
  readonly #originMs: number;
  readonly #texts = new Texts();
  readonly #rows: PageRow[] = [];
  readonly #rowOfStream: Map<string, number> = new Map();

  constructor(originMs: number) {
    this.#originMs = originMs;
  }

  build(recorded: RecordedPage): PageData {
    const rows = [...grouped(recorded.spans, rowOfSpan)];
    // By device, in the order in which streams were made. A stream of which no time is known yet has no row.
    const lists = [...grouped(recorded.operations, ({ device }) => device).values()]
      .flatMap((all) => [...grouped(all, streamKeyOf).values()].toSorted(([a], [b]) => a!.slot - b!.slot))
      .map(shownOf)
      .filter(({ length }) => length > 0);
    const places: Places = new Map();
    for (const [n, list] of lists.entries())
      for (const [at, { operation }] of list.entries()) places.set(pointOf(operation), [rows.length + n, at]);
    const rank = ([name, [first]]: (typeof rows)[number]): string => (first!.lane === undefined ? `2 ${first!.kind}` : `1 ${name}`);
    for (const [name, spans] of rows.toSorted((a, b) => rank(a).localeCompare(rank(b), 'en', { numeric: true }))) {
      const shown = spans.map(({ kind, name: label, startMs, endMs, awaited }) => ({ kind, label, startMs, endMs, awaited }));
      this.#rows.push({ group: HOST, name, levels: apart(shown).map((level) => this.#waits(level, places)) });
    }
    for (const list of lists) {
      const { device, stream } = list[0]!.operation;
      this.#rowOfStream.set(streamKeyOf(list[0]!.operation), this.#rows.length);
      this.#rows.push({ group: device, name: stream, levels: [{ ...this.#slices(list), operations: this.#operations(list, places) }] });
    }
    return {
      recordedAt: new Date(performance.timeOrigin + recorded.startMs).toISOString(),
      startNs: this.#ns(recorded.startMs),
      endNs: this.#ns(recorded.endMs),
      dropped: recorded.dropped,
      texts: this.#texts.list,
      rows: this.#rows,
      gaps: this.#gaps(recorded.gaps()),
      ...costsOf(recorded.summary()),
    };
  }

  #ns(ms: number): number {
    return Math.round((ms - this.#originMs) * 1e6);
  }

  #slices(list: readonly Shown[]): PageSlices {
    const starts = list.map(({ startMs }) => this.#ns(startMs));
    return {
      starts: deltas(starts),
      lengths: list.map(({ endMs }, at) => (endMs === undefined ? -1 : Math.max(0, this.#ns(endMs) - starts[at]!))),
      kinds: list.map(({ kind }) => this.#texts.of(kind)),
      labels: list.map(({ label }) => this.#texts.of(label)),
    };
  }

  #waits(list: readonly ShownSpan[], places: Places): PageSlices {
    const awaited = list.flatMap(({ awaited: point }, at) => {
      const place = point && places.get(pointOf(point));
      return place ? [[at, ...place] as const] : [];
    });
    return { ...this.#slices(list), ...(awaited.length > 0 && { awaited }) };
  }

  #operations(list: readonly ShownOperation[], places: Places): PageOperations {
    const textOf = (text: string | undefined): number | null => (text === undefined ? null : this.#texts.of(text));
    const before = (ms: number | undefined, startMs: number): number | null => (ms === undefined ? null : this.#ns(startMs) - this.#ns(ms));
    return {
      tickets: deltas(list.map(({ operation }) => operation.ticket)),
      ids: list.map(({ operation }) => operation.id ?? null),
      bytes: list.map(({ operation }) => operation.bytes ?? null),
      directions: list.map(({ operation }) => textOf(operation.direction)),
      pageable: list.map(({ operation: { direction, isPageable = null } }) =>
        direction === 'device' || direction === 'peer' ? null : isPageable,
      ),
      threads: list.map(({ operation }) => operation.threads ?? null),
      sites: list.map(({ operation }) => textOf(operation.at)),
      timedTogether: list.map(({ operation }) => operation.timedTogether ?? null),
      submitted: list.map(({ operation, startMs }) => before(operation.submittedMs, startMs)),
      issued: list.map(({ operation, startMs }) => before(operation.issuedMs, startMs)),
      parked: list.flatMap(({ operation }, at) =>
        (operation.parked ?? []).map(({ reason, fromMs }) => [at, this.#texts.of(reason), this.#ns(fromMs)] as const),
      ),
      after: list.flatMap(({ operation: { after } }, at) => {
        const place = after && places.get(pointOf(after));
        return place ? [[at, ...place, this.#texts.of(after.cause)] as const] : [];
      }),
    };
  }

  #gaps(gaps: readonly Gap[]): PageGap[] {
    const longest = gaps.toSorted((a, b) => b.endMs - b.startMs - (a.endMs - a.startMs)).slice(0, MOST_GAPS);
    return longest.map(({ after, startMs, endMs, explanations }) => ({
      row: this.#rowOfStream.get(streamKeyOf(after)) as number,
      startNs: this.#ns(startMs),
      endNs: this.#ns(endMs),
      reasons: explanations.map(reasonOf),
    }));
  }
}

function reasonOf({ reason, ms, text, remedy }: Explanation): PageReason {
  return { reason, ms, text, remedy };
}

function costsOf({ reasons, withoutTimes }: RecordingSummary): Pick<PageData, 'costs' | 'withoutTimes'> {
  const costs: PageCost[] = reasons.map(({ ms, share, count, worst }) => ({ ...reasonOf(worst), ms, share, count }));
  return { costs, withoutTimes };
}

interface ShownOperation extends Shown {
  readonly operation: RecordedOperation;
}

/** The operations of one stream, also those that did not end, or of which the device told no times: with the time that is known. */
function shownOf(operations: readonly RecordedOperation[]): ShownOperation[] {
  const runs = new Map(runsOf(operations).map((run) => [run.operation, run]));
  let beforeMs = -Infinity;
  const shown: ShownOperation[] = [];
  for (const operation of operations.toSorted((a, b) => a.ticket - b.ticket)) {
    const { kind, label = kind, issuedMs, submittedMs } = operation;
    const { startMs = issuedMs ?? submittedMs, endMs } = runs.get(operation) ?? {};
    if (startMs === undefined) continue;
    // In the order of their tickets, whatever the clocks tell.
    const orderedMs = Math.max(beforeMs, startMs);
    beforeMs = endMs === undefined ? orderedMs : Math.max(orderedMs, endMs);
    shown.push({ kind, label, startMs: orderedMs, ...(endMs !== undefined && { endMs: beforeMs }), operation });
  }
  return shown;
}

function deltas(values: readonly number[]): number[] {
  return values.map((value, at) => value - (values[at - 1] ?? 0));
}

/** In as few levels as possible, so that those of a level do not overlap. What is around something is in a level above it. */
function apart<T extends { readonly startMs: number; readonly endMs: number }>(spans: readonly T[]): T[][] {
  const levels: T[][] = [];
  for (const span of spans.toSorted((a, b) => a.startMs - b.startMs || b.endMs - a.endMs)) {
    const level = levels.find((one) => one.at(-1)!.endMs <= span.startMs);
    if (level === undefined) levels.push([span]);
    else level.push(span);
  }
  return levels;
}

/** The page that the build wrote: its text before and after the data. */
let template: readonly string[] | undefined;

export function pageDataOf(recorded: RecordedPage): PageData {
  return new PageBuilder(earliestMs(recorded)).build(recorded);
}

export function timelinePage(recorded: RecordedPage): string {
  template ??= readFileSync(new URL('page.html', import.meta.url), 'utf8').split('{{data}}');
  const data = pageDataOf(recorded);
  // In base64, nothing of it is markup.
  return template.join(deflateRawSync(JSON.stringify(data)).toString('base64'));
}
