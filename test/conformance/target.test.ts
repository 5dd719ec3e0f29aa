// The target of a project is on this machine. With MILLRACE_TEST_CUDA=1, the absence of a CUDA device is a failure.
import { expect, test } from 'vitest';
import { found } from '../support/targets.js';

const project = process.env['MILLRACE_TEST_TARGET'] ?? '';

test(`S801 the chapters run on ${project}`, async (context) => {
  if (typeof found === 'string') {
    const isRequired = project === 'cuda' && process.env['MILLRACE_TEST_CUDA'] === '1';
    expect(isRequired, `MILLRACE_TEST_CUDA is 1, but: ${found}`).toBe(false);
    context.skip(found);
    return;
  }
  for (const target of found) {
    await using device = await target.open();
    expect(device.info.backend).toBe(target.spec.split(':')[0]);
  }
});
