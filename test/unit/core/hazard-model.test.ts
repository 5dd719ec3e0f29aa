// What `checked` streams refuse, against a model that knows for every use the set of all uses before it: random programs of
// checked, tracked and explicit streams, events, waits, reads and completions, seen and unseen.
import type { Ordering } from '../../../src/core/device/stream-context.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { DeviceArray } from '../../../src/core/api/array.js';
import { StreamHazardError } from '../../../src/core/base/errors.js';
import type { DeviceEvent } from '../../../src/core/api/event.js';
import type { Operation } from '../../../src/core/operations/operation.js';
import type { Stream } from '../../../src/core/api/stream.js';
import { type Fixture, fixture, turn } from './fake-channel.js';

const BYTES = 8;
const STREAMS = 4;
const EVENTS = 3;
const ARRAYS = 2;

interface Use {
  readonly stream: number;
  readonly array: number;
  readonly start: number;
  readonly end: number;
  readonly isWrite: boolean;
  /** All uses of its record. */
  readonly record: readonly Use[];
  /** Every use that comes before that. */
  readonly past: ReadonlySet<Use>;
}

/** A place in a stream: what comes before it, and the ticket that has to be reached. */
interface Place {
  readonly past: ReadonlySet<Use>;
  readonly stream: number;
  readonly ticket: number;
}

type Step =
  | { readonly kind: 'fill'; readonly stream: number; readonly array: number; readonly range: readonly [number, number] }
  | {
      readonly kind: 'copy';
      readonly stream: number;
      readonly array: number;
      readonly range: readonly [number, number];
      readonly to: number;
    }
  | { readonly kind: 'record' | 'waitEvent'; readonly stream: number; readonly event: number }
  | { readonly kind: 'waitStream'; readonly stream: number; readonly other: number }
  | { readonly kind: 'finish'; readonly stream: number }
  | { readonly kind: 'seeOperation'; readonly pick: number; readonly awaits: boolean }
  | { readonly kind: 'seeEvent'; readonly event: number; readonly awaits: boolean }
  | { readonly kind: 'seeStream'; readonly stream: number; readonly awaits: boolean }
  | { readonly kind: 'seeDevice' }
  | { readonly kind: 'read'; readonly array: number; readonly range: readonly [number, number]; readonly awaits: boolean };

const stream = fc.nat(STREAMS - 1);
const array = fc.nat(ARRAYS - 1);
const event = fc.nat(EVENTS - 1);
const awaits = fc.boolean();
const range = fc
  .tuple(fc.nat(BYTES), fc.nat(BYTES))
  .map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const)
  .filter(([start, end]) => start < end);
const is = <K extends string>(kind: K): fc.Arbitrary<K> => fc.constant(kind);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: is('fill'), stream, array, range }) },
  { weight: 6, arbitrary: fc.record({ kind: is('copy'), stream, array, range, to: fc.nat(BYTES) }) },
  { weight: 3, arbitrary: fc.record({ kind: is('record'), stream, event }) },
  { weight: 4, arbitrary: fc.record({ kind: is('waitEvent'), stream, event }) },
  { weight: 4, arbitrary: fc.record({ kind: is('waitStream'), stream, other: stream }) },
  { weight: 4, arbitrary: fc.record({ kind: is('finish'), stream }) },
  { weight: 2, arbitrary: fc.record({ kind: is('seeOperation'), pick: fc.nat(100), awaits }) },
  { weight: 2, arbitrary: fc.record({ kind: is('seeEvent'), event, awaits }) },
  { weight: 1, arbitrary: fc.record({ kind: is('seeStream'), stream, awaits }) },
  { weight: 1, arbitrary: fc.record({ kind: is('seeDevice') }) },
  { weight: 2, arbitrary: fc.record({ kind: is('read'), array, range, awaits }) },
);
const ordering = fc.oneof(
  { weight: 3, arbitrary: is('checked') },
  { weight: 1, arbitrary: is('tracked') },
  { weight: 1, arbitrary: is('explicit') },
);

/** How many calls were refused and how many were not, over all programs. */
const tally = { refused: 0, taken: 0 };

class Program {
  readonly #fixture: Fixture = fixture();
  readonly #streams: readonly Stream[];
  readonly #events: readonly DeviceEvent[];
  readonly #arrays: readonly DeviceArray<'u8'>[];
  readonly #operations: { readonly operation: Operation; readonly place: Place }[] = [];
  readonly #uses: Use[] = [];
  /** What comes before the next record of each stream, by its waits and its own records. */
  readonly #pasts: Set<Use>[] = Array.from({ length: STREAMS }, () => new Set());
  readonly #recorded: (Place | undefined)[] = [];
  readonly #seen: Set<Use> = new Set();

  constructor(orderings: readonly Ordering[]) {
    const { device } = this.#fixture;
    this.#streams = orderings.map((each) => device.createStream({ ordering: each }));
    this.#events = Array.from({ length: EVENTS }, () => device.createEvent());
    this.#arrays = Array.from({ length: ARRAYS }, (_, at) => {
      const made = this.#streams[at]!.empty([BYTES], 'u8');
      this.#note(at, [{ array: at, start: 0, end: BYTES, isWrite: true }]);
      return made;
    });
  }

  async run(now: Step): Promise<void> {
    const { channel, device, progress } = this.#fixture;
    switch (now.kind) {
      case 'fill':
        return this.#submit(now.stream, 'fill', [{ array: now.array, start: now.range[0], end: now.range[1], isWrite: true }], (by) =>
          by.fill(this.#arrays[now.array]!.subarray(...now.range), 1),
        );
      case 'copy': {
        const [start, end] = now.range;
        const to = Math.min(now.to, BYTES - (end - start));
        const other = 1 - now.array;
        const uses = [
          { array: other, start: to, end: to + end - start, isWrite: true },
          { array: now.array, start, end, isWrite: false },
        ];
        return this.#submit(now.stream, 'copy', uses, (by) =>
          by.copy(this.#arrays[other]!.subarray(to, to + end - start), this.#arrays[now.array]!.subarray(start, end)),
        );
      }
      case 'record':
        this.#streams[now.stream]!.record(this.#events[now.event]!);
        this.#recorded[now.event] = this.#here(now.stream);
        return;
      case 'waitEvent':
        this.#streams[now.stream]!.waitEvent(this.#events[now.event]!);
        this.#add(this.#pasts[now.stream]!, this.#recorded[now.event]?.past ?? []);
        return;
      case 'waitStream':
        this.#streams[now.stream]!.waitStream(this.#streams[now.other]!);
        this.#add(this.#pasts[now.stream]!, this.#pasts[now.other]!);
        return;
      case 'finish': {
        const { slot, last } = this.#streams[now.stream]!.timeline;
        channel.complete(slot, last);
        progress.wake();
        return;
      }
      case 'seeOperation': {
        const picked = this.#operations[now.pick % this.#operations.length];
        if (picked === undefined) return;
        const isReached = this.#isReached(picked.place);
        if (!now.awaits) expect(picked.operation.isComplete).toBe(isReached);
        else if (isReached) await picked.operation.done;
        if (isReached) this.#add(this.#seen, picked.place.past);
        return;
      }
      case 'seeEvent': {
        const place = this.#recorded[now.event];
        const isReached = place === undefined || this.#isReached(place);
        if (!now.awaits) expect(this.#events[now.event]!.isComplete).toBe(isReached);
        else if (isReached) await this.#events[now.event]!.done;
        if (isReached) this.#add(this.#seen, place?.past ?? []);
        return;
      }
      case 'seeStream': {
        const seen = this.#streams[now.stream]!;
        const isReached = this.#isReached(this.#here(now.stream));
        if (!now.awaits) expect(seen.isComplete).toBe(isReached);
        else if (isReached) await seen.synchronize();
        if (isReached) this.#add(this.#seen, this.#pasts[now.stream]!);
        return;
      }
      case 'seeDevice':
        channel.completeAll();
        progress.wake();
        await device.synchronize();
        for (const past of this.#pasts) this.#add(this.#seen, past);
        return;
      case 'read': {
        const [start, end] = now.range;
        const read = this.#arrays[now.array]!.subarray(start, end).read();
        const place = { array: now.array, start, end };
        const sources = this.#uses.filter((use) => use.isWrite && overlaps(use, place));
        // A settled promise counts as observed even without a listener.
        const told = read.then(() => {
          for (const use of sources) this.#add(this.#seen, [...use.record, ...use.past]);
        });
        if (!now.awaits) return;
        channel.completeAll();
        progress.wake();
        await told;
        return;
      }
    }
  }

  #submit(by: number, kind: string, uses: readonly Omit<Use, 'past' | 'record' | 'stream'>[], call: (stream: Stream) => Operation): void {
    const { channel } = this.#fixture;
    const caller = this.#streams[by]!;
    const conflicts = (earlier: Use): boolean =>
      earlier.stream !== by && uses.some((use) => (use.isWrite || earlier.isWrite) && overlaps(use, earlier));
    const earlier = this.#uses.filter(conflicts);
    const racing = earlier.filter((use) => !this.#pasts[by]!.has(use) && !this.#seen.has(use));
    if (caller.ordering === 'checked' && racing.length > 0) {
      const before = channel.records.length;
      // A refusal changes nothing: the same call is refused again.
      for (let n = 0; n < 2; n++) {
        let refusal: unknown;
        try {
          call(caller);
        } catch (error) {
          refusal = error;
        }
        expect(refusal).toBeInstanceOf(StreamHazardError);
        const { first, second } = refusal as StreamHazardError;
        expect(racing.some((use) => this.#streams[use.stream]!.label === first.stream && use.isWrite === (first.access === 'write'))).toBe(
          true,
        );
        expect(second).toMatchObject({ stream: caller.label, operation: { kind } });
      }
      expect(channel.records).toHaveLength(before);
      tally.refused++;
      return;
    }
    tally.taken++;
    const operation = call(caller);
    if (caller.ordering === 'tracked') for (const use of earlier) this.#add(this.#pasts[by]!, [...use.record, ...use.past]);
    this.#note(by, uses);
    this.#operations.push({ operation, place: this.#here(by) });
  }

  #note(by: number, uses: readonly Omit<Use, 'past' | 'record' | 'stream'>[]): void {
    const past = new Set([...this.#pasts[by]!, ...this.#seen]);
    const record: Use[] = [];
    for (const use of uses) record.push({ ...use, stream: by, record, past });
    this.#uses.push(...record);
    this.#add(this.#pasts[by]!, record);
  }

  #here(at: number): Place {
    return { past: new Set(this.#pasts[at]), stream: at, ticket: this.#streams[at]!.timeline.last };
  }

  #isReached({ stream: at, ticket }: Place): boolean {
    return this.#streams[at]!.timeline.hasReached(ticket);
  }

  #add(to: Set<Use>, uses: Iterable<Use>): void {
    for (const use of uses) to.add(use);
  }
}

function overlaps(a: Pick<Use, 'array' | 'start' | 'end'>, b: Pick<Use, 'array' | 'start' | 'end'>): boolean {
  return a.array === b.array && a.start < b.end && b.start < a.end;
}

test('a call is refused exactly if the model finds an earlier unordered use', async () => {
  const orderings = fc.array(ordering, { minLength: STREAMS, maxLength: STREAMS }) as fc.Arbitrary<Ordering[]>;
  // Clocks are kept from the first checked stream on; what was before is another test's.
  fixture().device.createStream({ ordering: 'checked' });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), orderings, async (steps, each) => {
      const program = new Program(each);
      for (const now of steps) {
        await program.run(now);
        await turn();
      }
    }),
    { numRuns: 300 },
  );
  expect(tally.refused).toBeGreaterThan(200);
  expect(tally.taken).toBeGreaterThan(200);
}, 60_000);
