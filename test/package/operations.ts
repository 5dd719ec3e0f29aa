// Rows of the matrix: operations of an installed package where there is no compiler.
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Ran, ROOT } from './registry.js';

/** The element types of the kernels that come with the tested package. Those of all types take two minutes. */
export const TYPES: readonly string[] = process.env['MILLRACE_LONG'] === '1' ? ['f32', 'f64', 'i32', 'bool'] : ['bool'];

/** `copy` makes a project with these files, and `node` runs one of them there. */
export function rowsOfOperations(
  copy: (name: string, files: Readonly<Record<string, string>>) => string,
  node: (args: readonly string[], cwd: string, env: Readonly<Record<string, string>>) => Promise<Ran>,
): void {
  describe('with operations, where there is no compiler', () => {
    const bare = { PATH: '/none', MILLRACE_CACHE: 'off' };
    const program = (body: string): string => `import { openDevice } from 'millrace';
import * as ops from 'millrace/ops';
import { callShipped } from ${JSON.stringify(path.join(ROOT, 'scripts/shipped-operations.mjs'))};
const device = await openDevice('cpu');
${body}
await device.close();`;

    test('all that the page lists for these types comes with the package, and nothing is compiled', async () => {
      const project = copy('operations', {
        'all.mjs': program(`
          for (const { names, arrays } of await callShipped(ops, device, ${JSON.stringify(TYPES)})) {
            for (const array of arrays) {
              await array.read().catch((error) => console.log(names, error.message));
              array[Symbol.dispose]();
            }
          }
          console.log('done');`),
      });
      expect(await node(['all.mjs'], project, bare)).toEqual({ code: 0, stdout: 'done\n', stderr: '' });
    });

    test('the results are right, and other operations say how to build them', async () => {
      const project = copy('operations-right', {
        'some.mjs': program(`
          const [x, y] = [[1, 0, 1, 1], [1, 1, 0, 0]].map((values) => device.from(values.map(Boolean), { dtype: 'bool' }));
          console.log(await ops.logicalAnd(x, y).list(), await ops.logicalNot(x).list(), await ops.sum(x).item(), await ops.all(x).item());
          const other = device.zeros(4, 'u16');
          const error = await ops.add(other, other).read().catch((caught) => caught);
          console.log((error.name === 'UpstreamError' ? error.cause : error).message);`),
      });
      const { code, stdout } = await node(['some.mjs'], project, { ...bare, NODE_NO_WARNINGS: '1' });
      const [right, message, ...help] = stdout.split('\n');
      expect([code, right]).toEqual([0, '[ true, false, false, false ] [ false, true, false, false ] 3n false']);
      expect(message).toMatch(/^K701: .* no image of add for these types \(u16, u16, u16\)/);
      expect(help.join('')).toMatch(/call add so in a module, .* npx millrace build/);
    });
  });
}
