// One run of the benchmarks on one device: measures Millrace and its peers in turn, and collects the results.
import type { Device } from 'millrace';
import { type Absent, figureOf, type Result } from './report.js';
import type { Peers } from './peers.js';
import { rowOf } from './rows.js';

/** Seconds of one thing, several times or once. The round before the first counted one is -1. */
export type Measure = (round: number) => readonly number[] | Promise<readonly number[]>;
/** A peer's request, that of a peer whose column has another name, or a program that runs once a round. */
export type Side = string | { readonly of: string; readonly request: string } | Measure;
/** Measurements in the row's unit, or the reason why there are none. */
export type Values = readonly number[] | Absent;
/** The seconds of each counted round, or the reason why there are none. */
export type Answers = readonly (readonly number[])[] | Absent;

export interface Comparison {
  /** Counted rounds. One more warms up all sides. */
  readonly rounds: number;
  /** From seconds to the row's unit. */
  readonly unit: (seconds: number) => number;
  readonly ours: Measure;
  readonly peers?: Readonly<Record<string, Side>>;
  readonly note?: string;
}

export const us = (seconds: number): number => seconds * 1e6;
export const ms = (seconds: number): number => seconds * 1e3;
export const gigabytesPerSecond =
  (bytes: number) =>
  (seconds: number): number =>
    bytes / seconds / 1e9;

export class Run {
  readonly device: Device;
  readonly peers: Peers;
  readonly isQuick: boolean;
  readonly results: Result[] = [];
  readonly #log: (line: string) => void;

  constructor(device: Device, peers: Peers, isQuick: boolean, log: (line: string) => void) {
    this.device = device;
    this.peers = peers;
    this.isQuick = isQuick;
    this.#log = log;
  }

  get isGpu(): boolean {
    return this.device.info.backend === 'cuda';
  }

  get ordinal(): string {
    return this.device.info.id.split(':')[1] ?? '0';
  }

  /** A number of rounds or repetitions, a tenth of it with --quick. */
  times(count: number): number {
    return this.isQuick ? Math.max(2, Math.round(count / 10)) : count;
  }

  add(id: string, ours: Values, peers: Readonly<Record<string, Values>> = {}, note?: string): void {
    const figure = (values: Values) => ('absent' in values ? values : figureOf(values));
    const others = Object.fromEntries(Object.entries(peers).map(([name, values]) => [name, figure(values)]));
    this.results.push({ id: rowOf(id).id, ours: figure(ours), peers: others, ...(note === undefined ? {} : { note }) });
    const { what, unit } = rowOf(id);
    const shown = Object.entries({ ours: figure(ours), ...others }).map(
      ([name, one]) => `${name} ${'absent' in one ? `absent (${one.absent})` : one.p50.toPrecision(3)}`,
    );
    this.#log(`${what}, ${unit}: ${shown.join(', ')}`);
  }

  async compare(id: string, { rounds, unit, ours, peers = {}, note }: Comparison): Promise<void> {
    const { '': own, ...others } = mapValues(await this.takeTurns(rounds, { '': ours, ...peers }), (taken) => inUnit(taken, unit));
    this.add(id, own, others, note);
  }

  /** Measures all sides in turn, each round beginning with another one. Gives what each side answered in the counted rounds. */
  async takeTurns<S extends string>(rounds: number, sides: Readonly<Record<S, Side>>): Promise<Readonly<Record<S, Answers>>> {
    const names = Object.keys(sides) as S[];
    const answers = new Map<S, readonly number[][]>(names.map((name) => [name, []]));
    const absent = new Map<S, string>();
    for (let round = -1; round < this.times(rounds); round++) {
      for (let turn = 0; turn < names.length; turn++) {
        const name = names[(round + 1 + turn) % names.length]!;
        if (absent.has(name)) continue;
        const seconds = await this.#ask(name, sides[name], round);
        if (typeof seconds === 'string') absent.set(name, seconds);
        else if (round >= 0) answers.set(name, [...answers.get(name)!, [...seconds]]);
      }
    }
    const answersOf = (name: S): Answers => (absent.has(name) ? { absent: absent.get(name)! } : answers.get(name)!);
    return Object.fromEntries(names.map((name) => [name, answersOf(name)])) as Record<S, Answers>;
  }

  async #ask(name: string, side: Side, round: number): Promise<readonly number[] | string> {
    if (typeof side === 'function') return side(round);
    const { of, request } = typeof side === 'string' ? { of: name, request: side } : side;
    const peer = this.peers.present.get(of);
    return peer === undefined ? (this.peers.absent.get(of) ?? 'not started') : peer.ask(request);
  }
}

/** All seconds of a side in a row's unit. */
export function inUnit(answers: Answers, unit: (seconds: number) => number): Values {
  return 'absent' in answers ? answers : answers.flat().map(unit);
}

export function mapValues<S extends string, A, B>(of: Readonly<Record<S, A>>, map: (value: A) => B): Record<S, B> {
  return Object.fromEntries(Object.entries<A>(of).map(([name, value]) => [name, map(value)])) as Record<S, B>;
}

/** The requests of GPU peers, none on the CPU device. */
export function onGpu(run: Run, peers: Readonly<Record<string, Side>>): Readonly<Record<string, Side>> {
  return run.isGpu ? peers : {};
}

/** Seconds of one of `count` synchronous submissions. */
export function secondsEach(count: number, submit: (n: number) => void): number {
  const start = performance.now();
  for (let n = 0; n < count; n++) submit(n);
  return (performance.now() - start) / 1e3 / count;
}

/** Seconds of each of `count` runs of `body`. */
export async function secondsOf(count: number, body: () => Promise<unknown>, before?: () => Promise<unknown>): Promise<number[]> {
  const seconds: number[] = [];
  for (let n = 0; n < count; n++) {
    await before?.();
    const start = performance.now();
    await body();
    seconds.push((performance.now() - start) / 1e3);
  }
  return seconds;
}
