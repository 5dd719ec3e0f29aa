// Which tickets of a stream failed, kept for those who can still ask and no longer.
//
// Tickets are kept by pages. The stream has the pages on which something may still fail; an operation has the page of its own
// ticket. When everything on a page has finished and its failures are in, the stream lets it go: it lives on with the operations
// that may be asked about it, and the collector takes it with the last of them. So a stream that has failed a million times
// costs as much as one that never did.
// Thread: owner.
import type { FailureRecord } from '../../protocol/reports.js';

/** An operation that is kept keeps the failures of so many tickets at most. */
const PAGE_TICKETS = 64;

/** A failure of tickets in a row. The newest of a stream may grow, on all its pages. */
interface Interval {
  record: FailureRecord;
}

const NONE: Interval[] = [];

export class FailurePage {
  /** Its first ticket. */
  readonly first: number;
  #intervals: Interval[] = NONE;

  constructor(first: number) {
    this.first = first;
  }

  get last(): number {
    return this.first + PAGE_TICKETS - 1;
  }

  /** The failure of a ticket of this page, among those noticed. */
  at(ticket: number): FailureRecord | undefined {
    return this.#intervals.findLast(({ record }) => ticket >= record.first && ticket <= record.last)?.record;
  }

  /** @internal */
  add(interval: Interval): void {
    if (this.#intervals === NONE) this.#intervals = [interval];
    else if (!this.#intervals.includes(interval)) this.#intervals.push(interval);
  }
}

const NO_PAGE = new FailurePage(Number.POSITIVE_INFINITY);

export class FailedTickets {
  /** Those on which something may still fail, by ticket. */
  #pages: FailurePage[] = [];
  #newest: FailurePage = NO_PAGE;
  /** The tickets up to here have finished, and their failures are in. */
  #settled: number;
  /** The newest failure, and how many there have been. */
  #grows: Interval | undefined = undefined;
  #count = 0;

  /** The last ticket of the streams that had the slot before. */
  constructor(origin: number) {
    this.#settled = origin;
  }

  /** The number of the newest known failure, which may have grown: what to ask for first. */
  get from(): number {
    return Math.max(0, this.#count - 1);
  }

  /** Where a failure of the ticket will be found; undefined where it has gone well or nobody asked in time. */
  pageOf(ticket: number): FailurePage | undefined {
    const newest = this.#newest;
    return ticket >= newest.first && ticket < newest.first + PAGE_TICKETS ? newest : this.#findPage(ticket);
  }

  /** Takes in the failures from `from` on; those that are new or have grown. */
  add(records: readonly FailureRecord[], origin: number): readonly FailureRecord[] {
    const fresh: FailureRecord[] = [];
    for (const record of records) {
      const grown = this.#grows;
      if (grown?.record.id === record.id) {
        const { last } = grown.record;
        if (last === record.last) continue;
        grown.record = record;
        this.#spread(grown, last + 1);
      } else {
        this.#count++;
        this.#grows = { record };
        // The slot's previous stream may have left some.
        if (record.last <= origin) continue;
        this.#spread(this.#grows, record.first);
      }
      fresh.push(record);
    }
    return fresh;
  }

  /** Everything up to the ticket has finished, and its failures were added. */
  settle(ticket: number): void {
    if (ticket <= this.#settled) return;
    this.#settled = ticket;
    if (this.#pages.length === 0 || (this.#pages[0] as FailurePage).last > ticket) return;
    this.#pages.splice(0, this.#find(ticket + 1));
    this.#newest = this.#pages.at(-1) ?? NO_PAGE;
  }

  /** On pages that somebody has asked for: an operation asks when it is submitted, so nobody else will. */
  #spread(interval: Interval, from: number): void {
    const { last } = interval.record;
    for (let at = this.#find(from); at < this.#pages.length; at++) {
      const page = this.#pages[at] as FailurePage;
      if (page.first > last) return;
      page.add(interval);
    }
  }

  #findPage(ticket: number): FailurePage | undefined {
    const at = this.#find(ticket);
    const known = this.#pages[at];
    if (known !== undefined && known.first <= ticket) return known;
    if (ticket <= this.#settled) return undefined;
    const page = new FailurePage(ticket - (ticket % PAGE_TICKETS));
    this.#pages.splice(at, 0, page);
    this.#newest = this.#pages.at(-1) as FailurePage;
    return page;
  }

  /** The place of the first page that ends at this ticket or behind it. */
  #find(ticket: number): number {
    let low = 0;
    for (let high = this.#pages.length; low < high; ) {
      const middle = (low + high) >>> 1;
      if ((this.#pages[middle] as FailurePage).last < ticket) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
