// Every order, up to a bound, in which a device can complete tickets while waiters are added, withdrawn and lost: between
// two turns of the loop, and inside each call that CompletionPolling makes. No waiter may be forgotten or settled twice.
//
// `explore` runs a scenario again and again. A run asks `choose` at each place where the device or the loop could do
// one of several things, and the runs together take every answer at every place.
import { describe, expect, test, vi } from 'vitest';
import { DeviceLostError } from '../../../src/core/base/errors.js';
import type { Channel } from '../../../src/core/channel/channel.js';
import type { Timeline } from '../../../src/core/timeline/timeline.js';
import { CompletionPolling } from '../../../src/core/waits/completion-polling.js';
import { IS_LONG } from '../../support/long.js';

vi.mock('../../../src/core/base/timers.js', () => import('../../support/global-timers.js'));

type Choose = (count: number) => number;

/** Calls `once` with every sequence of choices; the number of runs. */
function explore(once: (choose: Choose) => void): number {
  const taken: { at: number; count: number }[] = [];
  for (let runs = 1; ; runs++) {
    let depth = 0;
    const choose: Choose = (count) => {
      if (count < 2) return 0;
      if (depth === taken.length) taken.push({ at: 0, count });
      return taken[depth++]!.at;
    };
    try {
      once(choose);
    } catch (error) {
      throw new Error(`After ${runs} runs, with the choices ${taken.map(({ at }) => at).join(' ')}.`, { cause: error });
    }
    while (taken.length > 0 && taken.at(-1)!.at + 1 === taken.at(-1)!.count) taken.pop();
    if (taken.length === 0) return runs;
    taken.at(-1)!.at++;
  }
}

interface Scenario {
  /** The tickets that are waited for, in the order of the waits, of each stream. */
  readonly waits: readonly { readonly stream: number; readonly ticket: number }[];
  /** The number of times that the device may complete a ticket inside a call of CompletionPolling. */
  readonly inside: number;
  /** How long a turn of the loop takes: with short turns CompletionPolling polls before it arms, with long ones it soon does not. */
  readonly turnMs: number;
  /** A channel that forgets what was armed for a stream when a reached ticket of it is armed. */
  readonly isForgetful?: boolean;
  /** One of the waits is given up at any point. */
  readonly withdraws?: number;
  /** The device is lost at any point. */
  readonly loses?: boolean;
}

/** A device with a few tickets a stream, which the choices complete, and a channel that rings as the native one does. */
class Device {
  readonly completed: number[];
  /** The armed tickets of each stream. */
  readonly armed: Set<number>[];
  readonly timelines: readonly Timeline[];
  /** Whether each stream was told that something waits for it. */
  readonly awaited: boolean[];
  isRung = false;
  isLost = false;
  readonly #scenario: Scenario;
  readonly #choose: Choose;
  readonly #last: readonly number[];
  #insideLeft: number;

  constructor(scenario: Scenario, choose: Choose) {
    const { waits, inside } = scenario;
    const streams = [...new Set(waits.map(({ stream }) => stream))].toSorted((a, b) => a - b);
    this.#scenario = scenario;
    this.#choose = choose;
    this.#insideLeft = inside;
    this.#last = streams.map((stream) => Math.max(...waits.map((wait) => (wait.stream === stream ? wait.ticket : 0))));
    this.completed = streams.map(() => 0);
    this.armed = streams.map(() => new Set());
    this.awaited = streams.map(() => false);
    const { awaited } = this;
    // The members of a timeline that CompletionPolling uses.
    const look = (stream: number): number => this.#look(stream);
    this.timelines = streams.map((slot) => {
      const timeline: Pick<Timeline, 'slot' | 'completed' | 'hasReached' | 'tellAwaited'> & { channel: Pick<Channel, 'arm'> } = {
        slot,
        channel: this,
        get completed() {
          return look(slot);
        },
        hasReached: (ticket) => look(slot) >= ticket,
        tellAwaited: (isAwaited) => void (awaited[slot] = isAwaited),
      };
      return timeline as Timeline;
    });
  }

  /** A stream that has something left to complete. */
  isBusy(stream: number): boolean {
    return !this.isLost && this.completed[stream]! < this.#last[stream]!;
  }

  advance(stream: number): void {
    const ticket = ++this.completed[stream]!;
    if (this.armed[stream]!.delete(ticket)) this.isRung = true;
  }

  arm(stream: number, ticket: number): boolean {
    if (this.#look(stream) >= ticket) {
      if (this.#scenario.isForgetful === true) this.armed[stream]!.clear();
      return true;
    }
    if (this.isLost) return true;
    this.armed[stream]!.add(ticket);
    this.#look(stream);
    return false;
  }

  /** CompletionPolling looks at a stream, which may have advanced just now. */
  #look(stream: number): number {
    if (this.#insideLeft > 0 && this.isBusy(stream) && this.#choose(2) === 1) {
      this.#insideLeft--;
      this.advance(stream);
    }
    return this.completed[stream]!;
  }
}

const LOST = new DeviceLostError('ERR_MILLRACE_LOST', 'lost', 'fault', { device: 'fake' });

/** The loop of the present run. */
const loop: { nowMs: number; turns: (() => void)[] } = { nowMs: 0, turns: [] };

function run(scenario: Scenario, choose: Choose): void {
  loop.nowMs = 0;
  const turns = (loop.turns = []) as (() => void)[];
  let isHeld = false;
  const progress = new CompletionPolling((on) => (isHeld = on));
  const device = new Device(scenario, choose);
  const { timelines } = device;
  for (const timeline of timelines) progress.join(timeline, () => undefined);

  const outcomes: string[][] = scenario.waits.map(() => []);
  const withdrawals: (() => void)[] = [];
  const given = { up: scenario.withdraws === undefined };
  const add = (): void => {
    const { stream, ticket } = scenario.waits[withdrawals.length]!;
    const outcome = outcomes[withdrawals.length]!;
    withdrawals.push(
      progress.add(timelines[stream]!, {
        ticket,
        keepsAlive: true,
        settle: () => outcome.push(device.completed[stream]! >= ticket ? 'settled' : 'settled too early'),
        lose: () => outcome.push('lost'),
      }),
    );
  };
  const withdraw = (): void => {
    withdrawals[scenario.withdraws!]!();
    outcomes[scenario.withdraws!]!.push('withdrawn');
    given.up = true;
  };
  const turn = (): void => {
    loop.nowMs += scenario.turnMs;
    for (const call of turns.splice(0)) call();
  };
  const ring = (): void => {
    device.isRung = false;
    progress.wake();
  };
  const lose = (): void => {
    device.isLost = true;
    for (const timeline of timelines) void progress.lose(timeline, LOST);
  };

  const checkAwaited = (): void => {
    for (const { slot } of timelines) {
      const waits = outcomes.some((outcome, n) => n < withdrawals.length && scenario.waits[n]!.stream === slot && outcome.length === 0);
      if (waits !== device.awaited[slot]) throw new Error(`Stream ${slot} is ${waits ? '' : 'not '}awaited, and was told otherwise.`);
    }
  };

  // Choose the next event, one at a time, until the scenario's calls are made.
  while (withdrawals.length < scenario.waits.length || !given.up || (scenario.loses === true && !device.isLost)) {
    const next: (() => void)[] = [];
    if (withdrawals.length < scenario.waits.length) next.push(add);
    if (!given.up && withdrawals.length > scenario.withdraws!) next.push(withdraw);
    if (scenario.loses === true && !device.isLost && withdrawals.length === scenario.waits.length) next.push(lose);
    if (turns.length > 0) next.push(turn);
    if (device.isRung) next.push(ring);
    for (const { slot } of timelines) if (device.isBusy(slot)) next.push(() => device.advance(slot));
    next[choose(next.length)]!();
    checkAwaited();
  }
  // Then the device finishes, first still at any point, and every wait settles.
  for (let steps = 0; ; steps++) {
    if (steps === 1000) throw new Error('It never ends.');
    if (device.isRung) ring();
    else if (turns.length > 0) turn();
    else {
      const busy = timelines.find(({ slot }) => device.isBusy(slot));
      if (busy === undefined) break;
      device.advance(busy.slot);
    }
    checkAwaited();
  }
  for (const [n, [first, ...rest]] of outcomes.entries()) {
    const isFine =
      first === 'settled' ? rest.every((what) => what === 'withdrawn') : rest.length === 0 && (first === 'withdrawn' || first === 'lost');
    if (!isFine) throw new Error(`Wait ${n}: ${[first, ...rest].join(', ')}.`);
  }
  if (isHeld) throw new Error('The loop is still held.');
}

/** All orders of the items. */
function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, n) => permutations([...items.slice(0, n), ...items.slice(n + 1)]).map((rest) => [item, ...rest]));
}

const ONE_STREAM = permutations([1, 2, 3]).map((tickets) => tickets.map((ticket) => ({ stream: 0, ticket })));
const TWO_STREAMS = permutations([
  { stream: 0, ticket: 1 },
  { stream: 0, ticket: 2 },
  { stream: 1, ticket: 1 },
]);
const SHORT = 0.03;
const LONG = 1;

/** The number of calls that take a few seconds; `inside` multiplies the orders most. */
const CASES: readonly (readonly [string, readonly Scenario['waits'][], Omit<Scenario, 'waits'>])[] = [
  ['one stream, short turns', ONE_STREAM, { inside: 1, turnMs: SHORT }],
  ['one stream, long turns', ONE_STREAM, { inside: 2, turnMs: LONG }],
  ['two streams, short turns', TWO_STREAMS.slice(3), { inside: 1, turnMs: SHORT }],
  ['two streams, long turns', TWO_STREAMS, { inside: 1, turnMs: LONG }],
  ['a channel that forgets when a reached ticket is armed, short turns', ONE_STREAM, { inside: 1, turnMs: SHORT, isForgetful: true }],
  ['a channel that forgets when a reached ticket is armed, long turns', ONE_STREAM, { inside: 2, turnMs: LONG, isForgetful: true }],
  ['the first wait is withdrawn, short turns', ONE_STREAM, { inside: 0, turnMs: SHORT, withdraws: 0 }],
  ['the first wait is withdrawn, long turns', ONE_STREAM, { inside: 1, turnMs: LONG, withdraws: 0 }],
  ['the last wait is withdrawn, long turns', ONE_STREAM, { inside: 1, turnMs: LONG, withdraws: 2 }],
  ['one of two streams has its wait withdrawn', TWO_STREAMS, { inside: 0, turnMs: LONG, withdraws: 1 }],
  ['the device is lost, short turns', ONE_STREAM, { inside: 0, turnMs: SHORT, loses: true }],
  ['the device is lost, long turns', ONE_STREAM, { inside: 1, turnMs: LONG, loses: true }],
  ['the device of two streams is lost', TWO_STREAMS, { inside: 0, turnMs: LONG, loses: true }],
];

describe('three waits in every order, whatever the device does meanwhile: each is settled once', () => {
  test.each(CASES)('%s', (title, all, scenario) => {
    let runs = 0;
    // Of every other order in the short form, beginning with the first or the second.
    const from = CASES.findIndex(([one]) => one === title) % 2;
    const orders = IS_LONG ? all : all.filter((_, at) => at % 2 === from);
    // Only while nothing but CompletionPolling runs: the test runner uses them too.
    vi.stubGlobal('setImmediate', (call: () => void) => loop.turns.push(call));
    vi.stubGlobal('performance', { now: () => loop.nowMs });
    try {
      for (const waits of orders) runs += explore((choose) => run({ waits, ...scenario }, choose));
    } finally {
      vi.unstubAllGlobals();
    }
    expect(runs).toBeGreaterThan(5000);
  });
});
