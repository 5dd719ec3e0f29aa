// The suite on the first CUDA device, if there is one. With MILLRACE_TEST_CUDA=1 its absence is a failure.
import { expect, test } from 'vitest';
import { listDevices, openDevice, UnavailableError } from 'millrace';
import { suite } from './suite.js';

const devices = (await listDevices()).filter(({ backend }) => backend === 'cuda');
const isRequired = process.env['MILLRACE_TEST_CUDA'] === '1';

if (devices.length > 0) {
  suite({
    name: 'cuda',
    spec: 'cuda:0',
    supports: { timing: true, memoryLimit: true, interprocess: true, spinsPerSecond: 4e6, waitingStreams: 16 },
    open: (options) => openDevice('cuda:0', options),
    ...(devices.length > 1 && { openOther: () => openDevice('cuda:1') }),
  });
} else {
  test('S801 the suite runs on cuda:0', async (context) => {
    const error = await openDevice('cuda').then(
      () => new Error('It opened although none is listed.'),
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(UnavailableError);
    const reason = (error as UnavailableError).message;
    expect(isRequired, `MILLRACE_TEST_CUDA is 1, but: ${reason}`).toBe(false);
    context.skip(reason);
  });
}
