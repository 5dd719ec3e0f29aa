// Chapter 15: ranks that join by a store, here of one process. test/process/joined.test.ts has several.
import { createHmac } from 'node:crypto';
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { BoundsError, CollectiveError, f32, inout, kernel, type DeviceArray, type DType } from 'millrace';
import { joinCommunicator, type JoinedCommunicator } from 'millrace/collectives';
import { tidy } from 'millrace/ops';
import { defineChapter } from '../../../support/chapter.js';
import { hold } from '../../../support/latch.js';
import { chapterDevices, rulesOf } from '../../../support/rule.js';
import { rejectionOf, thrownBy } from '../../../support/wait.js';

const outside = kernel('joined_outside', { x: inout(f32) }, ({ x }, { i }) => {
  x[i + 1000] = 1;
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** A message between a rank and the store. */
function framed(header: string, bytes: Uint8Array = new Uint8Array()): Buffer {
  const prefix = Buffer.alloc(12);
  prefix.writeUInt32LE(header.length, 0);
  prefix.writeDoubleLE(bytes.byteLength, 4);
  return Buffer.concat([prefix, Buffer.from(header), bytes]);
}

/** A store that knows the secret and sends rank 1 this message, and one piece for each of its parts. */
async function strangeStore(ready: object): Promise<{ readonly port: number; close(): void }> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    const send = (message: object, bytes?: Uint8Array): void => void socket.write(framed(JSON.stringify(message), bytes));
    send({ type: 'challenge', nonce: 'own', generation: 0 });
    socket.on('data', (data) => {
      const { type, nonce, key } = JSON.parse(data.subarray(12, 12 + data.readUInt32LE(0)).toString()) as Record<string, string>;
      if (type === 'part') send({ type: 'parts', key, lengths: [4] }, new Uint8Array(4));
      if (type !== 'hello') return;
      send({ type: 'accepted', proof: createHmac('sha256', 'known').update(`store ${nonce} own`).digest('hex') });
      send(ready);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() };
}

/** Whether the store ends the connection on these bytes. */
async function hangsUp(port: number, bytes: Buffer): Promise<boolean> {
  while (true) {
    const socket = connect({ host: '127.0.0.1', port });
    const isOpen = await new Promise<boolean>((resolve) => socket.once('connect', () => resolve(true)).once('error', () => resolve(false)));
    if (!isOpen) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      continue;
    }
    socket.write(bytes);
    socket.resume();
    return await new Promise((resolve) => socket.once('close', () => resolve(true)));
  }
}

defineChapter((target) => {
  describe('15 collectives of ranks that join', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);
    const isOnCpu = target.spec.startsWith('cpu');
    let ranks: readonly JoinedCommunicator[] = [];
    const join = async (): Promise<JoinedCommunicator[]> => {
      const store = { host: '127.0.0.1', port: await freePort() };
      const devices = [chapter.device, chapter.other];
      return Promise.all(devices.map((device, rank) => joinCommunicator({ device, rank, size: 2, store })));
    };
    beforeAll(async () => {
      ranks = await join();
    });
    afterAll(async () => {
      await Promise.all(ranks.map((rank) => rank.close()));
    });
    const both = <D extends DType>(ofRank: readonly (readonly number[])[], dtype: D): DeviceArray<D>[] =>
      [chapter.device, chapter.other].map((device, rank) => device.from(ofRank[rank]! as never, { dtype }) as DeviceArray<D>);
    const read = (arrays: readonly (DeviceArray | undefined)[]): Promise<unknown[]> =>
      Promise.all(arrays.map((array) => Promise.resolve(array === undefined ? null : array.list())));

    rule('S1331', 'each rank gives an array and gets its own', async () => {
      const x = both(
        [
          [1, 2],
          [3, 4],
        ],
        'f32',
      );
      expect(ranks.map(({ rank, size, device }) => [rank, size, device])).toEqual([
        [0, 2, chapter.device],
        [1, 2, chapter.other],
      ]);
      const each = <R>(call: (group: JoinedCommunicator, array: DeviceArray<'f32'>) => R): R[] =>
        ranks.map((group, rank) => call(group, x[rank]!));
      const arrays = (calls: readonly { readonly array: DeviceArray | undefined }[]): Promise<unknown[]> =>
        read(calls.map(({ array }) => array));
      expect(await arrays(each((g, a) => g.allReduce(a)))).toEqual([
        [4, 6],
        [4, 6],
      ]);
      expect(await arrays(each((g, a) => g.reduce(a, { root: 1, op: 'max' })))).toEqual([null, [3, 4]]);
      expect(await arrays(each((g, a) => g.broadcast(a, { root: 1 })))).toEqual([
        [3, 4],
        [3, 4],
      ]);
      expect(await arrays(each((g, a) => g.allGather(a)))).toEqual([
        [
          [1, 2],
          [3, 4],
        ],
        [
          [1, 2],
          [3, 4],
        ],
      ]);
      expect(await arrays(each((g, a) => g.reduceScatter(a, { op: 'mean' })))).toEqual([2, 3]);
      expect(await arrays(each((g, a) => g.allToAll(a)))).toEqual([
        [1, 3],
        [2, 4],
      ]);
      await Promise.all(each((g) => g.barrier().done));
      await Promise.all([ranks[0]!.send(x[0]!, { to: 1 }).done, ranks[1]!.receive(x[1]!, { from: 0 }).done]);
      expect(await read(x)).toEqual([
        [1, 2],
        [1, 2],
      ]);
      const grids = both(
        [
          [1, 2, 3, 4],
          [5, 6, 7, 8],
        ],
        'i32',
      ).map((array) => array.reshape([2, 2]));
      await Promise.all(ranks.map((group, rank) => group.allToAll(grids[rank]!, { into: grids[rank]! }).done));
      expect(await read(grids)).toEqual([
        [
          [1, 2],
          [5, 6],
        ],
        [
          [3, 4],
          [7, 8],
        ],
      ]);
    });

    rule('S1331', 'a call goes on behind the end of a scope or a tidy, which own its result', async () => {
      const x = both(
        [
          [1, 2],
          [3, 4],
        ],
        'f32',
      );
      const outers = ranks.map(({ device }) => device.scope());
      const returned = ranks.map((rank, at) =>
        outers[at]!.run(() => [rank.device.scope(() => rank.allReduce(x[at]!)), tidy(() => rank.reduceScatter(x[at]!))] as const),
      );
      const ended = ranks.map((rank, at) => tidy(() => rank.group(() => rank.allGather(x[at]!)).done));
      await Promise.all([...returned.flat().map(({ done }) => done), ...ended]);
      expect(await read(returned.map(([{ array }]) => array))).toEqual([
        [4, 6],
        [4, 6],
      ]);
      expect(await read(returned.map(([, { array }]) => array))).toEqual([4, 6]);
      for (const outer of outers) outer[Symbol.dispose]();
      expect(returned.flat().map(({ array }) => array.isDisposed)).toEqual([true, true, true, true]);
    });

    rule('S1335', 'ranks that receive before they send, in groups', async () => {
      const x = both(
        [
          [1, 2],
          [3, 4],
        ],
        'f32',
      );
      const got = x.map((array) => array.device.zeros(2));
      const streams = [chapter.device, chapter.other].map((device) => device.createStream());
      const calls = ranks.map((group, rank) =>
        group.group(() => {
          const received = group.receive(got[rank]!, { from: 1 - rank, stream: streams[rank]! });
          expect(thrownBy(() => received.operation)).toMatchObject({ name: 'StateError' });
          return [received, group.send(x[rank]!, { to: 1 - rank }), group.allReduce(x[rank]!, { op: 'max' })] as const;
        }),
      );
      await Promise.all(calls.flat().map(({ done }) => done));
      expect(await read(got)).toEqual([
        [3, 4],
        [1, 2],
      ]);
      expect(await read(calls.map(([, , { array }]) => array))).toEqual([
        [3, 4],
        [3, 4],
      ]);
      const [group] = ranks as [JoinedCommunicator];
      for (const [expected, fn] of [
        [{ name: 'StateError' }, () => group.group(() => undefined)],
        [{ name: 'StateError' }, () => ranks[1]!.allReduce(x[1]!)],
        [{ name: 'StateError' }, () => group.barrier()],
        [{ name: 'ArgumentError', argument: 'fn' }, async () => group.allReduce(x[0]!)],
      ] as const)
        expect(
          thrownBy(() => group.group(fn as () => unknown)),
          String(fn),
        ).toMatchObject(expected);
      await Promise.all(streams.map((stream) => stream.close()));
      expect(await read(ranks.map((rank, at) => rank.allReduce(x[at]!).array))).toEqual([
        [4, 6],
        [4, 6],
      ]);
    });

    rule('S1334', 'what does not fit is refused at the call', async () => {
      const [a, b] = both(
        [
          [1, 2],
          [3, 4],
        ],
        'f32',
      ) as [DeviceArray<'f32'>, DeviceArray<'f32'>];
      const group = ranks[0]!;
      const wrong: readonly (readonly [string, () => unknown])[] = [
        ['array', () => group.allReduce(b)],
        ['array', () => group.allReduce(1 as never)],
        ['op', () => group.allReduce(a, { op: 'none' as never })],
        ['op', () => group.allReduce(chapter.device.zeros(2, 'i32'), { op: 'mean' })],
        ['root', () => group.broadcast(a, { root: 2 })],
        ['into', () => group.allGather(a, { into: a })],
        ['into', () => group.reduce(a, { root: 1, into: a })],
        ['stream', () => group.barrier({ stream: chapter.other.stream })],
        ['opts', () => group.allReduce(a, { root: 0 } as never)],
        ['array', () => group.reduceScatter(chapter.device.zeros(3))],
        ['to', () => group.send(a, { to: 0 })],
        ['from', () => group.receive(a, { from: 5 })],
      ];
      for (const [argument, call] of wrong)
        expect([thrownBy(call).name, (thrownBy(call) as { argument?: string }).argument], call.toString()).toEqual([
          'ArgumentError',
          argument,
        ]);
      for (const [argument, opts] of [
        ['size', {}],
        ['rank', { size: 2 }],
        ['rank', { size: 2, rank: 2 }],
        ['timeoutMs', { size: 2, rank: 0, timeoutMs: 0 }],
        ['secret', { size: 2, rank: 1, store: { host: '192.0.2.1' } }],
        ['device', { device: 'gpu' as never }],
      ] as const)
        expect(await rejectionOf(joinCommunicator({ device: chapter.device, ...opts }))).toMatchObject({ name: 'ArgumentError', argument });
    });

    rule('S1333', 'abort ends what is in flight on all ranks; those that live join again', async () => {
      const group = await join();
      const x = both([[1], [2]], 'f32');
      const waiting = group[0]!.allReduce(x[0]!);
      const ended = rejectionOf(waiting.done);
      group[1]!.abort();
      expect(await ended).toBeInstanceOf(CollectiveError);
      expect(await rejectionOf(waiting.array.read())).toMatchObject({ cause: expect.any(CollectiveError) as unknown });
      expect(thrownBy(() => group[0]!.barrier())).toMatchObject({ reason: 'aborted', ranks: [1] });
      const next = await Promise.all(group.map((rank) => rank.shrink()));
      expect(next.map(({ rank, size }) => [rank, size])).toEqual([
        [0, 2],
        [1, 2],
      ]);
      const sums = next.map((rank, at) => rank.allReduce(x[at]!).array);
      expect(await read(sums)).toEqual([[3], [3]]);
      await Promise.all(next.map((rank) => rank.close()));
      expect(thrownBy(() => next[0]!.barrier())).toMatchObject({ reason: 'closed' });
    });

    rule('S1333', 'a rank that comes to the first of two calls alone is waited for no longer than the time-out', async () => {
      const store = { host: '127.0.0.1', port: await freePort() };
      const devices = [chapter.device, chapter.other];
      const two = await Promise.all(devices.map((device, rank) => joinCommunicator({ device, rank, size: 2, store, timeoutMs: 1500 })));
      const x = both([[1], [2]], 'f32');
      const firsts = two.map((rank, at) => rank.allReduce(x[at]!));
      const second = two[0]!.allReduce(x[0]!);
      expect(await read(firsts.map(({ array }) => array))).toEqual([[3], [3]]);
      expect(await rejectionOf(second.done)).toBeInstanceOf(CollectiveError);
      await Promise.all(two.map((rank) => rank.close()));
    });

    rule('S1333', 'work that a rank has before a call does not count', async () => {
      const store = { host: '127.0.0.1', port: await freePort() };
      const devices = [chapter.device, chapter.other];
      const timeoutMs = 1000;
      const two = await Promise.all(devices.map((device, rank) => joinCommunicator({ device, rank, size: 2, store, timeoutMs })));
      const x = both([[1], [2]], 'f32');
      const stream = chapter.device.createStream({ ordering: 'explicit' });
      const latch = await hold(target, stream);
      stream.waitStream(chapter.device.stream);
      const own = two[0]!.allReduce(x[0]!, { stream });
      await new Promise((resolve) => setTimeout(resolve, timeoutMs * 1.5));
      latch.open();
      const other = two[1]!.allReduce(x[1]!);
      expect(await read([own.array, other.array])).toEqual([[3], [3]]);
      await latch[Symbol.asyncDispose]();
      await Promise.all(two.map((rank) => rank.close()));
    });

    rule('S1334', 'strangers that connect to the store are shut out, and the ranks join', async () => {
      const store = { host: '127.0.0.1', port: await freePort() };
      const first = joinCommunicator({ device: chapter.device, rank: 0, size: 2, store, secret: 'known' });
      const long = Buffer.alloc(12);
      long.writeUInt32LE(2 ** 31, 0);
      const strange = [
        long,
        Buffer.alloc(4000, 0x5a),
        framed('{'),
        framed('null'),
        framed('{"type":"part"}'),
        framed('{"type":"hello","rank":1,"proof":"x"}'),
      ];
      for (const bytes of strange) expect(await hangsUp(store.port, bytes)).toBe(true);
      const second = joinCommunicator({ device: chapter.other, rank: 1, size: 2, store, secret: 'known' });
      const group = await Promise.all([first, second]);
      expect(group.map(({ size }) => size)).toEqual([2, 2]);
      await Promise.all(group.map((rank) => rank.close()));
    });

    rule('S1334', 'messages that no store sends are refused', async () => {
      const place = { host: '127.0.0.1', port: 1 };
      const good = { type: 'ready', rank: 1, old: [0, 1], places: [place, place] };
      const enter = async (ready: object): Promise<JoinedCommunicator> => {
        const store = await strangeStore(ready);
        return joinCommunicator({ device: chapter.device, rank: 1, size: 2, store: { port: store.port }, secret: 'known' }).finally(
          store.close,
        );
      };
      for (const wrong of [
        { old: undefined },
        { rank: 0 },
        { old: [0, -1] },
        { places: [place] },
        { places: [place, null] },
        { places: [place, { host: 1, port: 1 }] },
        { places: [place, { host: '127.0.0.1', port: '1' }] },
        { id: 'none' },
      ])
        expect(await rejectionOf(enter({ ...good, ...wrong })), JSON.stringify(wrong)).toMatchObject({
          name: 'CollectiveError',
          reason: 'failed',
          message: expect.stringContaining('the store sent a malformed message') as unknown,
        });
      if (!isOnCpu) return;
      // One piece for two ranks.
      const rank = await enter(good);
      expect(await rejectionOf(rank.allReduce(chapter.device.ones(1)).done)).toMatchObject({
        reason: 'lost',
        message: expect.stringContaining('malformed') as unknown,
      });
      await rank.close();
    });

    rule('S1332', 'an operand that failed fails the collective on all ranks', async () => {
      const group = await join();
      const x = both([[1], [2]], 'f32');
      expect(await rejectionOf(chapter.other.stream.launch(outside, 1, { x: x[1]! }).done)).toBeInstanceOf(BoundsError);
      // A rejection that a scope asked for would be nobody's.
      const calls = group.map((rank, at) => rank.device.scope(() => rank.allReduce(x[at]!)));
      const errors = await Promise.all(calls.map(({ done }) => rejectionOf(done)));
      expect(errors[0]).toMatchObject({ name: 'CollectiveError', reason: isOnCpu ? 'failed' : 'aborted' });
      expect(errors[1]).toMatchObject({ cause: expect.any(BoundsError) as unknown });
      await Promise.all(group.map((rank) => rank.close()));
    });

    rule('S1332', 'elements of every dtype move', async () => {
      for (const dtype of ['i8', 'u16', 'f16', 'bf16', 'f64', 'i64'] as const) {
        const x = [chapter.device, chapter.other].map((device, rank) =>
          device.full(2, (dtype === 'i64' ? BigInt(rank) : rank) as never, dtype),
        );
        const all = await read(ranks.map((group, rank) => group.allGather(x[rank]!).array));
        expect(all.map((list) => (list as unknown[][]).map((row) => row.map(Number)))).toEqual(
          Array.from({ length: 2 }, () => [
            [0, 0],
            [1, 1],
          ]),
        );
      }
      if (!isOnCpu) expect(thrownBy(() => ranks[0]!.allReduce(chapter.device.zeros(1, 'i16')))).toMatchObject({ argument: 'op' });
    });
  });
});
