// Operators and creation functions of RxJS 7 that pass values on, each with random parameters. What a value is does not matter
// to any of them: an array, or something that holds arrays. `random(n)` gives a whole number below n; `keyOf` tells values apart.
import * as rx from 'rxjs';

const { interval, map, of, take, tap, timer } = rx;
const FAULT = 'thrown by the chain';

/** Delays a value inside an inner Observable. */
const later = (random) => {
  const ms = random(4);
  return (value) => (ms === 3 ? of(value) : timer(ms).pipe(map(() => value)));
};
const ticks = (random) => interval(1 + random(3)).pipe(take(500));
/** Throws at the third value of the first `times` subscriptions. */
const faulty = (source, times) => {
  let subscriptions = 0;
  return rx.defer(() => {
    const isFaulty = subscriptions++ < times;
    return source.pipe(
      map((value, at) => {
        if (isFaulty && at === 2) throw new Error(FAULT);
        return value;
      }),
    );
  });
};
const schedulers = [rx.asapScheduler, rx.asyncScheduler, rx.queueScheduler];

/** Each value once at most: `source` is subscribed to once, or again after it has ended. */
export const OPERATORS = {
  map: (source) => source.pipe(map((value) => value)),
  'map to an object': (source) => source.pipe(map((value) => ({ value }))),
  filter: (source) => source.pipe(rx.filter((_, at) => at % 3 !== 1)),
  tap: (source) => source.pipe(tap(() => undefined)),
  delay: (source, random) => source.pipe(rx.delay(random(5))),
  delayWhen: (source, random) => source.pipe(rx.delayWhen(() => timer(random(4)))),
  debounceTime: (source, random) => source.pipe(rx.debounceTime(random(3))),
  debounce: (source, random) => source.pipe(rx.debounce(() => timer(random(3)))),
  buffer: (source, random) => source.pipe(rx.buffer(ticks(random))),
  bufferCount: (source, random) => source.pipe(rx.bufferCount(1 + random(4))),
  'bufferCount, overlapping': (source) => source.pipe(rx.bufferCount(3, 1)),
  bufferTime: (source, random) => source.pipe(rx.bufferTime(1 + random(4))),
  bufferToggle: (source, random) => source.pipe(rx.bufferToggle(ticks(random), () => timer(random(5)))),
  bufferWhen: (source, random) => source.pipe(rx.bufferWhen(() => timer(1 + random(4)))),
  window: (source, random) => source.pipe(rx.window(ticks(random)), rx.mergeAll()),
  windowCount: (source, random) => source.pipe(rx.windowCount(1 + random(3)), rx.mergeAll()),
  windowTime: (source, random) => source.pipe(rx.windowTime(1 + random(4)), rx.mergeAll()),
  windowToggle: (source, random) =>
    source.pipe(
      rx.windowToggle(ticks(random), () => timer(random(5))),
      rx.mergeAll(),
    ),
  windowWhen: (source, random) =>
    source.pipe(
      rx.windowWhen(() => timer(1 + random(4))),
      rx.mergeAll(),
    ),
  concatMap: (source, random) => source.pipe(rx.concatMap(later(random))),
  'concatMap of an async function': (source) => source.pipe(rx.concatMap(async (value) => value)),
  mergeMap: (source, random) => source.pipe(rx.mergeMap(later(random), 1 + random(3))),
  switchMap: (source, random) => source.pipe(rx.switchMap(later(random))),
  exhaustMap: (source, random) => source.pipe(rx.exhaustMap(later(random))),
  concatAll: (source, random) => source.pipe(map(later(random)), rx.concatAll()),
  mergeAll: (source, random) => source.pipe(map(later(random)), rx.mergeAll(2)),
  switchAll: (source, random) => source.pipe(map(later(random)), rx.switchAll()),
  exhaustAll: (source, random) => source.pipe(map(later(random)), rx.exhaustAll()),
  combineLatestAll: (source, random) => source.pipe(map(later(random)), rx.combineLatestAll()),
  zipAll: (source, random) => source.pipe(map(later(random)), rx.zipAll()),
  share: (source) => source.pipe(rx.share()),
  shareReplay: (source) => source.pipe(rx.shareReplay()),
  'shareReplay with refCount': (source, random) => source.pipe(rx.shareReplay({ bufferSize: 1 + random(4), refCount: true })),
  connect: (source) => source.pipe(rx.connect((shared) => rx.merge(shared, shared.pipe(rx.delay(1))))),
  'connect to a zip with itself': (source) => source.pipe(rx.connect((shared) => rx.zip(shared, shared.pipe(rx.skip(1))))),
  'connect to combineLatest': (source) => source.pipe(rx.connect((shared) => rx.combineLatest([shared, shared.pipe(rx.delay(1))]))),
  'connect to withLatestFrom': (source) => source.pipe(rx.connect((shared) => shared.pipe(rx.withLatestFrom(shared.pipe(rx.skip(1)))))),
  'publish, refCount': (source) => source.pipe(rx.publish(), rx.refCount()),
  'publishReplay, refCount': (source) => source.pipe(rx.publishReplay(2), rx.refCount()),
  'publishLast, refCount': (source) => source.pipe(rx.publishLast(), rx.refCount()),
  'publishBehavior, refCount': (source) => source.pipe(rx.publishBehavior([]), rx.refCount()),
  'multicast, refCount': (source) =>
    source.pipe(
      rx.multicast(() => new rx.ReplaySubject(3)),
      rx.refCount(),
    ),
  connectable: (source) =>
    new rx.Observable((sink) => {
      const shared = rx.connectable(source, { connector: () => new rx.Subject() });
      const both = rx.merge(shared, shared.pipe(rx.delay(1))).subscribe(sink);
      both.add(shared.connect());
      return both;
    }),
  startWith: (source) => source.pipe(rx.startWith([])),
  endWith: (source) => source.pipe(rx.endWith([])),
  scan: (source) => source.pipe(rx.scan((kept, value) => [...kept.slice(-2), value], [])),
  reduce: (source) => source.pipe(rx.reduce((kept, value) => [...kept, value], [])),
  'toArray, mergeAll': (source) => source.pipe(rx.toArray(), rx.mergeAll()),
  groupBy: (source, _, keyOf) =>
    source.pipe(
      rx.groupBy((value) => keyOf(value) % 3),
      rx.mergeAll(),
    ),
  pairwise: (source) => source.pipe(rx.pairwise()),
  take: (source, random) => source.pipe(take(1 + random(6))),
  takeLast: (source, random) => source.pipe(rx.takeLast(1 + random(4))),
  takeUntil: (source, random) => source.pipe(rx.takeUntil(timer(2 + random(20)))),
  takeWhile: (source, random) => {
    const count = random(6);
    return source.pipe(rx.takeWhile((_, at) => at < count, true));
  },
  skip: (source, random) => source.pipe(rx.skip(random(3))),
  skipLast: (source, random) => source.pipe(rx.skipLast(1 + random(2))),
  skipUntil: (source, random) => source.pipe(rx.skipUntil(timer(random(5)))),
  skipWhile: (source) => source.pipe(rx.skipWhile((_, at) => at < 2)),
  first: (source) => source.pipe(rx.first(null, [])),
  last: (source) => source.pipe(rx.last(null, [])),
  single: (source) => source.pipe(rx.single((_, at) => at === 1)),
  elementAt: (source, random) => source.pipe(rx.elementAt(random(4), [])),
  find: (source) => source.pipe(rx.find((_, at) => at === 2)),
  distinct: (source, _, keyOf) => source.pipe(rx.distinct(keyOf)),
  distinctUntilChanged: (source) => source.pipe(rx.distinctUntilChanged()),
  distinctUntilKeyChanged: (source) => source.pipe(rx.distinctUntilKeyChanged('0')),
  throttle: (source, random) => source.pipe(rx.throttle(() => timer(random(4)), { leading: true, trailing: true })),
  throttleTime: (source, random) => source.pipe(rx.throttleTime(1 + random(3), undefined, { leading: false, trailing: true })),
  audit: (source, random) => source.pipe(rx.audit(() => timer(random(4)))),
  auditTime: (source, random) => source.pipe(rx.auditTime(random(4))),
  sample: (source, random) => source.pipe(rx.sample(ticks(random))),
  sampleTime: (source, random) => source.pipe(rx.sampleTime(1 + random(4))),
  observeOn: (source, random) => source.pipe(rx.observeOn(schedulers[random(3)], 0)),
  subscribeOn: (source, random) => source.pipe(rx.subscribeOn(schedulers[random(3)], 0)),
  materialize: (source) => source.pipe(rx.materialize()),
  'materialize, dematerialize': (source) => source.pipe(rx.materialize(), rx.delay(1), rx.dematerialize()),
  timestamp: (source) => source.pipe(rx.timestamp()),
  timeInterval: (source) => source.pipe(rx.timeInterval()),
  finalize: (source) => source.pipe(rx.finalize(() => undefined)),
  'catchError, nothing more': (source) => faulty(source, 1).pipe(rx.catchError(() => rx.EMPTY)),
  // An aborted run fails each time anew, so only the chain's own error is worth another run.
  'catchError, again': (source) =>
    faulty(source, 1).pipe(rx.catchError((error, caught) => (error.message === FAULT ? caught : rx.throwError(() => error)))),
  retry: (source) => faulty(source, 2).pipe(rx.retry(2)),
  'retry with a delay': (source) => faulty(source, 1).pipe(rx.retry({ count: 1, delay: 1 })),
  'an error that nothing catches': (source) => faulty(source, 1),
  repeat: (source) => source.pipe(rx.repeat(2)),
  'repeat with a delay': (source) => source.pipe(rx.repeat({ count: 2, delay: 1 })),
  defaultIfEmpty: (source) => source.pipe(rx.defaultIfEmpty([])),
  throwIfEmpty: (source) => source.pipe(rx.throwIfEmpty()),
  ignoreElements: (source) => source.pipe(rx.ignoreElements()),
  isEmpty: (source) => source.pipe(rx.isEmpty()),
  count: (source) => source.pipe(rx.count()),
  every: (source) => source.pipe(rx.every((_, at) => at < 3)),
  max: (source, _, keyOf) => source.pipe(rx.max((a, b) => keyOf(a) - keyOf(b))),
  min: (source, _, keyOf) => source.pipe(rx.min((a, b) => keyOf(a) - keyOf(b))),
  expand: (source) => source.pipe(rx.expand((value) => (Array.isArray(value) ? rx.EMPTY : of([value])))),
  mergeScan: (source, random) => {
    const wait = later(random);
    return source.pipe(rx.mergeScan((kept, value) => wait([kept.at(-1) ?? [], value]), []));
  },
  switchScan: (source, random) => {
    const wait = later(random);
    return source.pipe(rx.switchScan((kept, value) => wait([kept.at(-1) ?? [], value]), []));
  },
  timeout: (source) => source.pipe(rx.timeout(60_000)),
  using: (source) =>
    rx.using(
      () => new rx.Subscription(),
      () => source,
    ),
  defer: (source) => rx.defer(() => source),
  iif: (source, random) => rx.iif(() => random(2) === 0, source, source.pipe(take(2))),
  from: (source) => rx.from(source),
  firstValueFrom: (source) => rx.defer(() => rx.firstValueFrom(source, { defaultValue: [] })),
  lastValueFrom: (source) => rx.defer(() => rx.lastValueFrom(source, { defaultValue: [] })),
};

/** Those that subscribe to the source twice at the same time, or to its second run after the first. */
export const COMBINATIONS = {
  merge: (source) => rx.merge(source, source),
  concat: (source) => rx.concat(source.pipe(take(2)), source),
  race: (source, random) => rx.race(source, source.pipe(rx.delay(random(3)))),
  zip: (source) => rx.zip(source, source),
  combineLatest: (source) => rx.combineLatest([source, source]),
  forkJoin: (source) => rx.forkJoin([source, source]),
  partition: (source, _, keyOf) => rx.merge(...rx.partition(source, (value) => keyOf(value) % 2 === 0)),
  onErrorResumeNext: (source) => rx.onErrorResumeNext(faulty(source, 1), source),
  withLatestFrom: (source) => source.pipe(rx.withLatestFrom(source)),
  raceWith: (source, random) => source.pipe(rx.delay(random(2)), rx.raceWith(source.pipe(rx.delay(random(3))))),
  zipWith: (source) => source.pipe(rx.zipWith(source)),
  concatWith: (source) => source.pipe(rx.concatWith(source)),
  mergeWith: (source) => source.pipe(rx.mergeWith(source)),
  combineLatestWith: (source) => source.pipe(rx.combineLatestWith(source)),
  onErrorResumeNextWith: (source) => faulty(source, 1).pipe(rx.onErrorResumeNextWith(source)),
  sequenceEqual: (source) => source.pipe(rx.sequenceEqual(source)),
};

/** Whether a chain may end with this error. */
export function isErrorOfChain(error) {
  return error?.message === FAULT || [rx.EmptyError, rx.NotFoundError, rx.SequenceError].some((type) => error instanceof type);
}
