// The pool's statistics and settings, and peer access: the calls of the worker, and the calls that are refused here.
import { describe, expect, test } from 'vitest';
import { ArgumentError, DeviceLostError, StateError, UnsupportedError } from '../../../src/core/base/errors.js';
import { PeerWhat } from '../../../src/protocol/protocol.gen.js';
import type { BackendName } from '../../../src/protocol/reports.js';
import { FakeChannel, type Fixture, fixture, INFO } from './fake-channel.js';

interface Asked extends Fixture {
  readonly asked: unknown[][];
}

function asking(backend: BackendName = 'cpu', ordinal: number = 0): Asked {
  const channel = new FakeChannel();
  channel.backend = backend;
  channel.info = { ...INFO, ordinal };
  const asked: unknown[][] = [];
  const answer = (name: Parameters<typeof channel.answers.set>[0], value?: unknown): void => {
    channel.answers.set(name, (...args) => {
      asked.push([name, ...args]);
      return value;
    });
  };
  answer('setReleaseThreshold');
  answer('trimPool');
  answer('resetHighWater');
  answer('releaseThreshold', 4096);
  answer('poolStats', { total: 100, free: 90, used: 8, usedHigh: 9, reserved: 10, reservedHigh: 11 });
  answer('peerState', { canGrant: true, isGranted: false });
  answer('setPeer', true);
  return { ...fixture(channel), asked };
}

describe('pool', () => {
  test.each([
    [0, 0],
    [0.5, INFO.totalMemoryBytes / 2],
    [1, INFO.totalMemoryBytes],
    [2, 2],
    [2 ** 40, 2 ** 40],
  ])('a threshold of %d is %d bytes', async (value, bytes) => {
    const { device, asked } = asking();
    expect(await device.pool.setReleaseThreshold(value)).toBeUndefined();
    expect(asked).toEqual([['setReleaseThreshold', bytes]]);
    expect(await device.pool.releaseThresholdBytes()).toBe(4096);
  });

  test.each([-1, -0.5, Number.NaN, Number.POSITIVE_INFINITY, 1.5, '1', undefined, null, 1n])(
    'a threshold of %s is refused',
    async (value) => {
      const { device, asked } = asking();
      await expect(device.pool.setReleaseThreshold(value as never)).rejects.toBeInstanceOf(ArgumentError);
      expect(asked).toEqual([]);
    },
  );

  test('trims to 0, or to the given bytes', async () => {
    const { device, asked } = asking();
    await device.pool.trim();
    await device.pool.trim(4096);
    for (const wrong of [-1, 0.5, '0']) await expect(device.pool.trim(wrong as never)).rejects.toBeInstanceOf(ArgumentError);
    await device.pool.resetHighWater();
    expect(asked).toEqual([['trimPool', 0], ['trimPool', 4096], ['resetHighWater']]);
  });

  test('a closed, destroyed or lost device refuses', async () => {
    const [closed, destroyed, lost] = [asking(), asking(), asking()];
    await closed.device.close();
    await destroyed.device.destroy();
    lost.core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'Gone.', 'fault'));
    for (const [{ device, asked }, error] of [
      [closed, StateError] as const,
      [destroyed, DeviceLostError] as const,
      [lost, DeviceLostError] as const,
    ]) {
      const { pool } = device;
      for (const call of [pool.stats(), pool.setReleaseThreshold(0), pool.releaseThresholdBytes(), pool.trim(), pool.resetHighWater()]) {
        await expect(call).rejects.toBeInstanceOf(error);
      }
      expect(asked).toEqual([]);
    }
  });
});

describe('peers', () => {
  test.each(['cuda', 'cpu'] as const)(
    'between %s devices the one that owns the memory sets the two independent switches',
    async (backend) => {
      const [one, two] = [asking(backend), asking(backend, 1)];
      const { peers } = one.device;
      expect([await peers.canGrant(two.device), await peers.isGranted(two.device, 'pool')]).toEqual([true, false]);
      await peers.grant(two.device);
      await peers.grant(two.device, 'pool');
      await peers.revoke(two.device);
      expect(one.asked.filter(([name]) => name === 'setPeer')).toEqual([
        ['setPeer', 1, PeerWhat.MEMORY, true],
        ['setPeer', 1, PeerWhat.POOL, true],
      ]);
      one.channel.answers.set('peerState', () => ({ canGrant: true, isGranted: true }));
      await peers.grant(two.device);
      await peers.revoke(two.device, 'pool');
      expect(one.asked.filter(([name]) => name === 'setPeer').at(-1)).toEqual(['setPeer', 1, PeerWhat.POOL, false]);
      expect(one.asked.filter(([name]) => name === 'setPeer')).toHaveLength(3);
      one.channel.answers.set('peerState', () => ({ canGrant: false, isGranted: false }));
      await expect(peers.grant(two.device)).rejects.toBeInstanceOf(UnsupportedError);
      expect(two.asked).toEqual([]);
    },
  );

  test('values that are not devices, bad names and destroyed devices are refused', async () => {
    const [one, two] = [asking('cuda'), asking('cuda', 1)];
    const { peers } = one.device;
    for (const stranger of [undefined, {}, 'gpu', two.core]) {
      for (const call of ['canGrant', 'isGranted', 'grant', 'revoke'] as const)
        await expect(peers[call](stranger as never)).rejects.toMatchObject({ name: 'ArgumentError', argument: 'peer' });
    }
    await expect(peers.grant(two.device, 'all' as never)).rejects.toBeInstanceOf(ArgumentError);
    await expect(peers.revoke(one.device, 'all' as never)).rejects.toBeInstanceOf(ArgumentError);
    await two.device.destroy();
    await expect(peers.canGrant(two.device)).rejects.toBeInstanceOf(DeviceLostError);
    await expect(two.device.peers.canGrant(one.device)).rejects.toBeInstanceOf(DeviceLostError);
    one.core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'Gone.', 'fault'));
    await expect(peers.revoke(one.device)).rejects.toBeInstanceOf(DeviceLostError);
    expect(one.asked).toEqual([]);
  });
});
