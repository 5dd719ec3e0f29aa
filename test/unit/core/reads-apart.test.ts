// Large results are copied by other threads: the event loop copies none of their bytes, and the promise waits for the copy.
import { expect, test } from 'vitest';
import { finish, settle } from './fake-channel.js';
import { open } from './opened.js';

const LENGTH = 6 * 2 ** 20;

test('other threads copy a large result into its new buffer, and the event loop the one of the caller', async () => {
  const made = open();
  const { channel, device } = made;
  const x = device.empty(LENGTH, 'u8');
  const copied: { readonly target: Uint8Array; readonly end: () => void }[] = [];
  let onLoop = 0;
  channel.copyHost = (target) => void (onLoop += target.byteLength);
  channel.copyHostApart = (target) => new Promise((end) => copied.push({ target, end }));

  let result: Uint8Array | undefined;
  const read = x.read().then((bytes) => (result = bytes));
  finish(made);
  await settle(made.progress);
  expect(copied.map(({ target }) => target.byteLength)).toEqual([LENGTH]);
  expect(result).toBeUndefined();
  copied[0]!.end();
  expect((await read).buffer).toBe(copied[0]!.target.buffer);
  expect(onLoop).toBe(0);

  const into = new Uint8Array(LENGTH);
  const again = x.read({ into });
  finish(made);
  await settle(made.progress);
  expect(await again).toBe(into);
  expect([onLoop, copied.length]).toEqual([LENGTH, 1]);
});
