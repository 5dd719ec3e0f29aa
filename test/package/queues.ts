// A row of the matrix: `millrace/queue` where none of its optional packages is installed.
import { expect, test } from 'vitest';
import type { Ran } from './registry.js';

/** `copy` makes a project with these files, `node` runs one of them. */
export function rowOfQueues(
  copy: (name: string, files: Readonly<Record<string, string>>) => string,
  node: (args: readonly string[], cwd: string) => Promise<Ran>,
): void {
  test('queues name the packages that a program with them needs', async () => {
    const project = copy('queues', {
      'queues.mjs': `import { openDevice } from 'millrace';
        import { bullmqSink, bullmqSource, natsSink, natsSource, overlapQueue } from 'millrace/queue';
        const device = await openDevice('cpu');
        const connection = {};
        for (const [source, sink] of [
          [natsSource({ connection, stream: 's', consumer: 'c', deadLetter: 'd' }), natsSink({ connection, subject: 'r' })],
          [bullmqSource({ connection, name: 'q' }), bullmqSink({ connection, name: 'r' })],
        ]) console.log(await overlapQueue(device, source, async () => {}, sink).done.catch(({ name, message }) => name + ' ' + message));
        await device.close();`,
      'queues.cjs': `console.log(typeof require('millrace/queue').overlapQueue);`,
    });
    const { code, stdout, stderr } = await node(['queues.mjs'], project);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const said = (name: string, packages: string): string =>
      `UnavailableError This queue needs the package ${name}, which cannot be loaded.\n  Install it beside millrace: npm install ${packages}\n`;
    expect(stdout).toBe(said('@nats-io/jetstream', '@nats-io/jetstream @nats-io/transport-node') + said('bullmq', 'bullmq ioredis'));
    expect((await node(['queues.cjs'], project)).stdout).toBe('function\n');
  });
}
