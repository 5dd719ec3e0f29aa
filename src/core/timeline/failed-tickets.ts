// Which tickets of a stream failed, kept as long as an operation may ask.
//
// Tickets are kept in pages. The stream references the pages with tickets that may still fail, and an operation references the page of
// its ticket. When every ticket of a page has finished and its failures were read, the stream drops the page. Operations keep it alive, and
// it is collected with the last of them. So a stream with a million failures takes no more memory than one without.
//
// Failures are read some at a time, in the order in which they were noticed, which need not be that of their tickets. So the failures
// up to a ticket are known once all were read that there were when it was seen to have finished.
// Thread: owner.
import type { FailureRecord } from '../../protocol/reports.js';

/** An operation keeps the failures of at most this many tickets alive. */
const PAGE_TICKETS = 64;

/** A failure of consecutive tickets. The newest failure of a stream may grow; all pages that it reaches share this object. */
interface Interval {
  record: FailureRecord;
}

const NONE: Interval[] = [];

export class FailurePage {
  /** The first ticket of the page. */
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
  /** The pages with tickets that may still fail, by ticket. */
  #pages: FailurePage[] = [];
  #newest: FailurePage = NO_PAGE;
  /** Everything up to this ticket has finished, its failures were read, and operations have asked for their pages. */
  #settled: number;
  /** Everything up to this ticket has finished, and its failures were read. */
  #known: number;
  /** The newest ticket that an operation has asked for. Failures of later ones may be read before their operations are made. */
  #asked: number;
  /** The failures of tickets after that. */
  #early: Interval[] = NONE;
  /** The newest failure, which may grow. */
  #grows: Interval | undefined = undefined;
  /** How many failures were read. */
  #count = 0;
  /** How many there are besides. */
  #rest = 0;
  /** The ticket that is settled once so many failures were read. */
  #next: { readonly ticket: number; readonly count: number } | undefined = undefined;

  /** `origin`: the last ticket of the streams that had the slot before. */
  constructor(origin: number) {
    this.#settled = this.#known = this.#asked = origin;
  }

  /** The index of the first failure to ask the device for: that of the newest known one, which may have grown. */
  get from(): number {
    return Math.max(0, this.#count - 1);
  }

  get known(): number {
    return this.#known;
  }

  /** Not all failures were read. */
  get isBehind(): boolean {
    return this.#rest > 0;
  }

  /** The page that will have a failure of the ticket; undefined if the ticket has finished and has no page. */
  pageOf(ticket: number): FailurePage | undefined {
    const newest = this.#newest;
    if (ticket > this.#asked) this.#asked = ticket;
    return ticket >= newest.first && ticket < newest.first + PAGE_TICKETS ? newest : this.#findPage(ticket);
  }

  /** Adds the failures from `from` on. Returns those that are new or have grown. */
  add(records: readonly FailureRecord[], origin: number): readonly FailureRecord[] {
    const fresh: FailureRecord[] = [];
    for (const record of records) {
      const grown = this.#grows;
      if (grown?.record.id === record.id) {
        const { last } = grown.record;
        if (last === record.last) continue;
        grown.record = record;
        this.#addToPages(grown, last + 1);
      } else {
        this.#count++;
        this.#grows = { record };
        // The stream that had the slot before may have left failures.
        if (record.last <= origin) continue;
        this.#addToPages(this.#grows, record.first);
      }
      fresh.push(record);
    }
    return fresh;
  }

  /** After `add`: so many failures follow those that were added. Everything up to `completed` had finished before they were asked for. */
  haveRead(rest: number, completed: number): void {
    this.#rest = rest;
    if (rest > 0 && this.#next !== undefined && this.#count < this.#next.count) return;
    this.settle(rest === 0 ? completed : (this.#next?.ticket ?? 0));
    this.#next = rest === 0 ? undefined : { ticket: completed, count: this.#count + rest };
  }

  /** Everything up to the ticket has finished, and its failures were added. */
  settle(ticket: number): void {
    if (ticket > this.#known) this.#known = ticket;
    const settled = Math.min(ticket, this.#asked);
    if (settled <= this.#settled) return;
    this.#settled = settled;
    if (this.#early.length > 0) this.#early = this.#early.filter(({ record }) => record.last > settled);
    if (this.#pages.length === 0 || (this.#pages[0] as FailurePage).last > settled) return;
    this.#pages.splice(0, this.#find(settled + 1));
    this.#newest = this.#pages.at(-1) ?? NO_PAGE;
  }

  /** Adds the interval to the existing pages, and keeps it for those that will be made. */
  #addToPages(interval: Interval, from: number): void {
    const { last } = interval.record;
    if (last > this.#asked && !this.#early.includes(interval)) this.#early = [...this.#early, interval];
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
    for (const interval of this.#early) if (interval.record.first <= page.last && interval.record.last >= page.first) page.add(interval);
    this.#pages.splice(at, 0, page);
    this.#newest = this.#pages.at(-1) as FailurePage;
    return page;
  }

  /** The index of the first page that ends at this ticket or later. */
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
