// Processes of their own, Millrace's and CuPy's in turn: from the import to the first result, and the first copies. Two groups report them.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FirstResult } from '../programs/first-result.js';
import { peerScript } from '../suite/peers.js';
import type { Run } from '../suite/run.js';

const ROUNDS = 5;
const MIB = [16, 64, 256] as const;

interface CupyFirst {
  readonly importSeconds: number;
  readonly resultSeconds: number;
  readonly upSeconds: Readonly<Record<string, number>>;
}

type Others = Readonly<Record<string, readonly number[] | { readonly absent: string }>>;
type Sides = { readonly ours: readonly number[]; readonly peers: Others };

export interface FirstRuns {
  readonly importSeconds: Sides;
  readonly openSeconds: Sides;
  readonly resultSeconds: Sides;
  readonly processSeconds: Sides;
  readonly upSeconds: ReadonlyMap<number, Sides>;
}

const known: WeakMap<Run, FirstRuns> = new WeakMap();

export async function firstRuns(run: Run): Promise<FirstRuns> {
  const measured = known.get(run) ?? measure(run);
  known.set(run, measured);
  return measured;
}

/** A process, and how long it took until it ended. */
function timed<T>(start: () => string): { readonly answer: T; readonly seconds: number } {
  const before = performance.now();
  const text = start();
  return { seconds: (performance.now() - before) / 1e3, answer: JSON.parse(text) as T };
}

function measure(run: Run): FirstRuns {
  const program = fileURLToPath(new URL('../programs/first-result.js', import.meta.url));
  const cache = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  // Its warnings, about copies that hold the event loop, are known here.
  const options = { env: { ...process.env, MILLRACE_CACHE_DIR: cache, NODE_NO_WARNINGS: '1' }, encoding: 'utf8' } as const;
  const mib = MIB.join(',');
  const ours: FirstResult[] = [];
  const cupy: CupyFirst[] = [];
  const processes: number[] = [];
  const processesOfCupy: number[] = [];
  let absent = run.peers.absent.get('CuPy');
  try {
    // The first processes fill the caches of built kernels, and are not counted.
    for (let round = -1; round < run.times(ROUNDS); round++) {
      const args = [program, run.device.info.id];
      const own = timed<FirstResult>(() => execFileSync(process.execPath, [...args, mib], options));
      const bare = timed(() => execFileSync(process.execPath, args, options));
      if (round >= 0) {
        ours.push(own.answer);
        processes.push(bare.seconds);
      }
      if (!run.isGpu || absent !== undefined) continue;
      const before = performance.now();
      const { status, stdout, stderr } = spawnSync('python3', [peerScript('cupy_first_result.py'), run.ordinal, mib], { encoding: 'utf8' });
      const seconds = (performance.now() - before) / 1e3;
      if (status !== 0) absent = stderr.trim().split('\n').at(-1) || 'its process failed';
      else if (round >= 0) {
        const answer = JSON.parse(stdout) as CupyFirst;
        cupy.push(answer);
        // Without the copies, which are no part of a first result.
        processesOfCupy.push(seconds - Object.values(answer.upSeconds).reduce((sum, one) => sum + one, 0));
      }
    }
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
  const sides = (of: (one: FirstResult) => number, ofCupy?: (one: CupyFirst) => number): Sides => {
    const values = ofCupy && run.isGpu ? { CuPy: absent === undefined ? cupy.map(ofCupy) : { absent } } : {};
    return { ours: ours.map(of), peers: values };
  };
  return {
    importSeconds: sides(
      (one) => one.importSeconds,
      (one) => one.importSeconds,
    ),
    openSeconds: sides((one) => one.openSeconds),
    resultSeconds: sides(
      (one) => one.resultSeconds,
      (one) => one.resultSeconds,
    ),
    processSeconds: { ours: processes, peers: run.isGpu ? { CuPy: absent === undefined ? processesOfCupy : { absent } } : {} },
    upSeconds: new Map(
      MIB.map((size) => [
        size,
        sides(
          (one) => one.upSeconds[size]!,
          (one) => one.upSeconds[size]!,
        ),
      ]),
    ),
  };
}
