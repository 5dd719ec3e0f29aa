// rxjs is a peer dependency that takes long to load: programs without Observables neither load nor need it.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Runs a module in a separate process and returns its parsed output. */
function run(code: string): unknown {
  const prelude = `import { createRequire } from 'node:module';
    const cache = createRequire(import.meta.url).cache;
    const isLoaded = (name) => Object.keys(cache).some((file) => file.includes('/node_modules/' + name + '/'));`;
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', prelude + code], { cwd: root, encoding: 'utf8' });
  expect(child.stderr).toBe('');
  return JSON.parse(child.stdout);
}

test('rxjs and piscina are loaded when they are first used', () => {
  const states = run(`
    const { createCpuPool, cpuTasks, overlap, openDevice } = await import('millrace');
    const device = await openDevice('cpu');
    const ones = device.ones(4);
    await ones.read();
    ones[Symbol.dispose]();
    const states = [[isLoaded('rxjs'), isLoaded('piscina')]];
    const results = overlap(device, [1], {}, (item) => Promise.resolve(item));
    states.push([isLoaded('rxjs'), isLoaded('piscina')]);
    for await (const item of results) states.push(item);
    const pool = createCpuPool(process.cwd() + '/dist/index.js');
    await pool.run(0).catch(() => undefined);
    states.push([isLoaded('rxjs'), isLoaded('piscina')]);
    await pool.close();
    await device.close();
    console.log(JSON.stringify(states));`);
  expect(states).toEqual([[false, false], [true, false], 1, [true, true]]);
});
