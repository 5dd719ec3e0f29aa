// What a queued operation costs in memory, and whether a launch costs more the more operations wait or the more streams there are.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Stream } from 'millrace';
import { empty, ONE } from '../suite/kernels.js';
import { type Run, secondsEach, us } from '../suite/run.js';

const MANY = 1_000_000;
const BURST = 500;
const STREAMS = [1, 10, 100, 1000] as const;

export async function queued(run: Run): Promise<void> {
  await run.device.compile(empty);
  memory(run);
  await depths(run);
  await streams(run);
}

function memory(run: Run): void {
  const program = fileURLToPath(new URL('../programs/queued-memory.js', import.meta.url));
  const bytes: number[] = [];
  for (let round = 0; round < run.times(3); round++) {
    const args = ['--expose-gc', program, run.device.info.id, String(run.isQuick ? MANY / 10 : MANY)];
    bytes.push(Number(execFileSync(process.execPath, args, { encoding: 'utf8' })));
  }
  run.add('queued.memory', bytes, {}, 'resident memory of the process');
}

/** Launches behind a held stream, which therefore stay queued. */
async function depths(run: Run): Promise<void> {
  const stream = run.device.createStream({ ordering: 'explicit' });
  const running = run.device.createStream({ ordering: 'explicit' });
  const launch = (): void => void stream.launch(empty, ONE, {});
  const fill = (count: number): void => {
    for (let n = 0; n < count; n++) launch();
  };
  const [one, thousand, million]: [number[], number[], number[]] = [[], [], []];
  const many = run.isQuick ? MANY / 10 : MANY;
  for (let round = -1; round < run.times(3); round++) {
    const into = (list: number[]): void => {
      // With few operations queued, the burst would otherwise come first after a wait: with cold caches, and with a thread to wake.
      for (let n = 0; n < BURST; n++) running.launch(empty, ONE, {});
      const seconds = secondsEach(BURST, launch);
      if (round >= 0) list.push(us(seconds));
    };
    for (let n = 0; n < 20; n++) {
      await whileHeld(stream, () => {
        into(one);
        fill(1000 - BURST);
        into(thousand);
      });
    }
    await whileHeld(stream, () => {
      fill(many);
      for (let n = 0; n < 20; n++) into(million);
    });
  }
  run.add('queued.1', one);
  run.add('queued.1000', thousand, { '1 queued': one });
  run.add('queued.1000000', million, { '1 queued': one }, run.isQuick ? `with ${many} operations` : undefined);
  await Promise.all([stream.close(), running.close()]);
}

async function whileHeld(stream: Stream, body: () => void): Promise<void> {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  stream.hold(() => released, { timeoutMs: 60_000 });
  body();
  release();
  await stream.synchronize();
}

async function streams(run: Run): Promise<void> {
  const { device } = run;
  const all = Array.from({ length: Math.max(...STREAMS) }, () => device.createStream({ ordering: 'explicit' }));
  const taken = new Map<number, number[]>(STREAMS.map((count) => [count, []]));
  for (let round = -1; round < run.times(60); round++) {
    for (let turn = 0; turn < STREAMS.length; turn++) {
      const count = STREAMS[(round + 1 + turn) % STREAMS.length]!;
      await device.synchronize();
      const seconds = secondsEach(2 * BURST, (n) => void all[n % count]!.launch(empty, ONE, {}));
      await device.synchronize();
      if (round >= 0) taken.get(count)!.push(us(seconds));
    }
  }
  const one = taken.get(1)!;
  for (const [count, values] of taken) run.add(`streams.${count}`, values, count === 1 ? {} : { '1 stream': one });
  await Promise.all(all.map((stream) => stream.close()));
}
