// How `overlap` behaves as an RxJS source and operator: when it subscribes, and who may interrupt whom.
import { asapScheduler, Observable, of, observeOn, repeat, retry, share, Subject, take, toArray } from 'rxjs';
import { afterEach, describe, expect, test } from 'vitest';
import { overlap, overlapMap, type Device, type Lane } from '../../../src/index.js';
import { createTestClock, createTestDevice, type TestClock } from '../../../src/testing/index.js';

let clock: TestClock;
let device: Device;
const made: Device[] = [];
function open(): Device {
  clock = createTestClock();
  device = createTestDevice({ clock });
  made.push(device);
  return device;
}
afterEach(async () => {
  // A stream that a run has not closed is listed.
  for (const each of made.splice(0)) {
    await clock.run(() => clock.sleep(1000));
    expect(each.inspect().streams.filter(({ stream }) => stream.startsWith('lane'))).toEqual([]);
    await each.close();
  }
});

const sleepy = async (n: number): Promise<number> => {
  await clock.sleep(5);
  return n * 10;
};
const collect = <T>(values: Observable<T>): Promise<T[]> =>
  clock.run(() => new Promise((resolve, reject) => values.pipe(toArray()).subscribe({ next: resolve, error: reject })));

describe('a subscription', () => {
  test('that ends at once leaves nothing of the source', async () => {
    const source = new Subject<number>();
    const stages: number[] = [];
    const subscription = source.pipe(overlapMap(open(), { overflow: 'fail' }, (n) => sleepy(stages.push(n)))).subscribe();
    source.next(1);
    subscription.unsubscribe();
    expect(source.observed).toBe(false);
    await clock.advance(10);
    expect(stages).toEqual([]);
  });

  test('whose consumer leaves within next ends the source and calls no further stage', async () => {
    const source = new Subject<number>();
    const stages: number[] = [];
    const opts = { overflow: 'buffer', maxQueue: 9, depth: 1 } as const;
    const seen: number[] = [];
    const results = source.pipe(
      overlapMap(open(), opts, (n) => sleepy(n + 0 * stages.push(n))),
      take(1),
    );
    results.subscribe({ next: (value) => seen.push(value), complete: () => seen.push(-1) });
    for (const n of [1, 2, 3]) source.next(n);
    await clock.advance(50);
    expect(seen).toEqual([10, -1]);
    expect(source.observed).toBe(false);
    expect(stages).toEqual([1]);
  });

  test('feeds its own source from within next', async () => {
    const source = new Subject<number>();
    const seen: number[] = [];
    source.pipe(overlapMap(open(), { overflow: 'fail', depth: 2 }, async (n: number) => n + 1)).subscribe({
      next: (value) => {
        seen.push(value);
        if (value < 4) source.next(value);
        else source.complete();
      },
      complete: () => seen.push(-1),
    });
    source.next(0);
    await clock.advance(0);
    expect(seen).toEqual([1, 2, 3, 4, -1]);
  });
});

describe('overflow', () => {
  test('counts a lane whose item is on its way as occupied', async () => {
    open();
    const dropped: number[] = [];
    const onSkip = ({ item }: { readonly item: number }): void => void dropped.push(item);
    // Each value comes in a microtask of its own, one of them between the end of a pull and the beginning of its item.
    const source = new Observable<number>((subscriber) => {
      let n = 0;
      const emit = (): void => {
        if (++n > 6) return subscriber.complete();
        subscriber.next(n);
        queueMicrotask(emit);
      };
      queueMicrotask(emit);
    });
    expect(await collect(source.pipe(overlapMap(device, { overflow: 'drop', depth: 1, onSkip }, sleepy)))).toEqual([10]);
    expect(dropped).toEqual([2, 3, 4, 5, 6]);
  });
});

describe('an operator', () => {
  test('can be applied twice, shared, repeated and retried', async () => {
    open();
    let runs = 0;
    const once = overlapMap<number, number>(device, { overflow: 'buffer', maxQueue: 9, depth: 1 }, sleepy);
    const twice = (values: Observable<number>): Observable<number> => values.pipe(once, once);
    expect(await collect(of(1, 2).pipe(twice))).toEqual([100, 200]);
    expect(await collect(of(1, 2).pipe(once, repeat(2)))).toEqual([10, 20, 10, 20]);
    const failing = overlap(
      device,
      () => [++runs],
      { depth: 1 },
      async (run: number, _lane: Lane) => {
        if (run < 3) throw new Error('again');
        return run;
      },
    );
    expect(await collect(failing.pipe(retry(5)))).toEqual([3]);
    const shared = overlap(device, () => [++runs], { depth: 1 }, sleepy).pipe(share());
    const both = await clock.run(() => Promise.all([shared, shared].map((each) => new Promise((resolve) => each.subscribe(resolve)))));
    expect(both).toEqual([40, 40]);
    expect(await collect(of(7).pipe(observeOn(asapScheduler), once))).toEqual([70]);
  });
});
