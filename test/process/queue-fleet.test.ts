// A fleet of workers of a queue, one of which is killed every second: each item has one result, and no worker ever has more of them than lanes.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { IS_LONG } from '../support/long.js';
import { queueCases, type TestQueue } from '../support/queue-servers.js';
import { SLOWNESS } from '../support/slowness.js';

const COUNT = IS_LONG ? 10_000 : 600;
/** Items that one worker ends afterwards. */
const REST = IS_LONG ? 10_000 : 300;
/** Each costs the start of a process, and what it had begun comes again late. */
const MOST_KILLS = IS_LONG ? Number.POSITIVE_INFINITY : 2;
const DEPTH = 4;
const ITEM_MS = 20;
const ACK_WAIT_MS = 1000;
const KILL_EVERY_MS = 1000;
/** After which the items of a killed worker have been delivered again, also on a slow machine: BullMQ looks for them at each `ackWaitMs`, twice. */
const REDELIVERED_MS = 15 * ACK_WAIT_MS;
/** That a worker may take more after the half of its items. */
const MOST_GROWTH = 4_000_000;

const program = fileURLToPath(new URL('./programs/queue-worker.mjs', import.meta.url));
const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

interface Told {
  readonly stored: number;
  readonly unacknowledged: number;
  readonly mostUnacknowledged: number;
  readonly unsettled: number;
  readonly heap: number;
}

class Worker {
  readonly told: Told[] = [];
  readonly ended: Promise<unknown[]>;
  readonly #child: ChildProcess;
  #errors = '';

  constructor(kind: string, port: number) {
    const args = [kind, port, DEPTH, ITEM_MS, ACK_WAIT_MS].map(String);
    this.#child = spawn(process.execPath, ['--expose-gc', program, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    let rest = '';
    this.#child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop()!;
      for (const line of lines) this.told.push(JSON.parse(line) as Told);
    });
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.#errors += text));
    this.ended = once(this.#child, 'close');
  }

  get isWorking(): boolean {
    return this.told.some(({ stored }) => stored > 0);
  }

  get errors(): string {
    return this.#errors;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}

for (const { name, absent, open } of queueCases) {
  describe.skipIf(absent)(absent === undefined ? name : `${name}: ${absent}`, () => {
    test(`each of ${COUNT} items has one result while a worker is killed every second`, {
      timeout: SLOWNESS * (IS_LONG ? 2_400_000 : 400_000),
    }, async () => {
      const queue = await open();
      const all: Worker[] = [];
      try {
        await body(queue, all);
      } finally {
        for (const worker of all) worker.kill('SIGKILL');
        await Promise.all(all.map(({ ended }) => ended));
        await queue.close();
      }
    });

    async function body(queue: TestQueue, all: Worker[]): Promise<void> {
      const start = (): Worker => {
        const worker = new Worker(name, queue.port);
        all.push(worker);
        return worker;
      };
      const until = async (
        what: string,
        check: () => boolean | Promise<boolean>,
        withinMs = IS_LONG ? 1_200_000 : 300_000,
      ): Promise<void> => {
        for (const end = performance.now() + SLOWNESS * withinMs; !(await check()); await pause(100))
          if (performance.now() > end) throw new Error(`Not within ${withinMs} ms: ${what}. ${all.map(({ errors }) => errors).join('')}`);
      };
      const workers = [start(), start()];
      await until('the workers have begun', () => workers.every(({ told }) => told.length > 0));
      await queue.publish(COUNT);

      // A random worker is killed every second, and another one starts in its place.
      const kills: number[] = [];
      const stopKilling = new AbortController();
      const killing = (async () => {
        while (!stopKilling.signal.aborted && kills.length < MOST_KILLS) {
          await pause(KILL_EVERY_MS);
          if (stopKilling.signal.aborted) return;
          // One that has done something, or a slow machine would come to nothing.
          const working = [0, 1].filter((at) => workers[at]!.isWorking);
          const at = working[Math.floor(Math.random() * working.length)];
          if (at === undefined) continue;
          workers[at]!.kill('SIGKILL');
          kills.push(performance.now());
          workers[at] = start();
        }
      })();
      let mostOfServer = 0;
      await until('nearly all items have ended', async () => {
        const { unacknowledged, waiting } = await queue.counts();
        const recent = kills.filter((ms) => ms > performance.now() - REDELIVERED_MS).length;
        mostOfServer = Math.max(mostOfServer, unacknowledged);
        expect(unacknowledged, `${recent} workers were killed lately`).toBeLessThanOrEqual(DEPTH * (2 + recent));
        return waiting + unacknowledged < COUNT / 10;
      });
      stopKilling.abort();
      await killing;
      expect(kills.length).toBeGreaterThanOrEqual(IS_LONG ? 10 : 2);

      // They drain with items left, and lose none.
      const halves = [...workers];
      await until('the new ones work', () => workers.every(({ told }) => told.length > 0));
      const began = performance.now();
      for (const worker of halves) worker.kill('SIGTERM');
      for (const worker of halves) expect(await worker.ended, worker.errors).toEqual([0, null]);
      const drainMs = performance.now() - began;
      expect(drainMs).toBeLessThan(SLOWNESS * 5000);
      for (const { told } of halves) expect(told.at(-1)).toMatchObject({ unacknowledged: 0, unsettled: 0 });

      // One worker ends the rest and more, with a heap that does not grow.
      await queue.publish(REST, COUNT);
      const last = start();
      await until('all items have ended', async () => {
        const { unacknowledged, waiting } = await queue.counts();
        return unacknowledged + waiting === 0;
      });
      last.kill('SIGTERM');
      expect(await last.ended, last.errors).toEqual([0, null]);
      const half = last.told.find(({ stored }) => stored >= REST / 2)!;
      const growth = last.told.at(-1)!.heap - half.heap;
      expect(growth).toBeLessThan(MOST_GROWTH);

      const results = await queue.results();
      expect(results.size).toBe(COUNT + REST);
      for (const [id, values] of results) expect([id, values]).toEqual([id, [String(Math.fround(Number(id.slice(1)) ** 2))]]);
      expect(await queue.dead()).toEqual([]);
      const mostOfWorker = Math.max(...all.flatMap(({ told }) => told.map(({ mostUnacknowledged }) => mostUnacknowledged)));
      expect(mostOfWorker).toBeLessThanOrEqual(DEPTH);
      const facts = [
        `${kills.length} kills`,
        `most unacknowledged ${mostOfWorker} of a worker, ${mostOfServer} of the server`,
        `drained in ${drainMs.toFixed(0)} ms`,
        `heap +${(growth / 1e6).toFixed(1)} MB`,
      ];
      console.log(`${name}: ${facts.join(', ')}`);
    }
  });
}
