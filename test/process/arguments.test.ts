// Nothing that JavaScript passes to the addon ends the process.
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { linesOf, runProgram } from './child.js';

const path = (from: string): string => fileURLToPath(new URL(`../../${from}`, import.meta.url));

test('every exported function refuses wrong arguments, and the device continues', async () => {
  const args = [path('build/Release/millrace.node'), path('dist/protocol/protocol.gen.js'), path('dist/protocol/encoder.js')];
  const ending = await runProgram('wrong-arguments', args, { timeoutMs: 60_000 });
  expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(linesOf(ending)).toEqual(['true', 'true', 'true true true']);
}, 90_000);
