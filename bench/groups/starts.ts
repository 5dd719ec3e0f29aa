// How long a new process takes to its first result, and how large the package is.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ms, type Run, type Values } from '../suite/run.js';
import { firstRuns } from './first-runs.js';

export async function starts(run: Run): Promise<void> {
  const { importSeconds, openSeconds, resultSeconds, processSeconds } = await firstRuns(run);
  const inMs = (values: readonly number[] | { readonly absent: string }): Values => ('absent' in values ? values : values.map(ms));
  for (const [id, { ours, peers }] of [
    ['start.import', importSeconds],
    ['start.open', openSeconds],
    ['start.result', resultSeconds],
    ['start.process', processSeconds],
  ] as const) {
    run.add(id, inMs(ours), Object.fromEntries(Object.entries(peers).map(([name, values]) => [name, inMs(values)])));
  }
  const { packed, unpacked } = packageKib();
  run.add('package.packed', packed);
  run.add('package.unpacked', unpacked);
}

function packageKib(): { readonly packed: Values; readonly unpacked: Values } {
  const root = fileURLToPath(new URL('../../../../', import.meta.url));
  const { status, stdout } = spawnSync('npm', ['pack', '--dry-run', '--ignore-scripts', '--json'], { cwd: root, encoding: 'utf8' });
  if (status !== 0) return { packed: { absent: 'npm is not installed' }, unpacked: { absent: 'npm is not installed' } };
  const [pack] = JSON.parse(stdout) as [{ size: number; unpackedSize: number }];
  return { packed: [pack.size / 1024], unpacked: [pack.unpackedSize / 1024] };
}
