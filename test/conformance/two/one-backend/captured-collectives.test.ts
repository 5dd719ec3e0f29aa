// Chapter 15: graphs with collectives of two devices, of one communicator or of ranks that join, here of one process.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect } from 'vitest';
import { CaptureError, type DeviceArray, type DType, type Graph } from 'millrace';
import { type Communicator, joinCommunicator, type JoinedCommunicator, openCommunicator } from 'millrace/collectives';
import { defineChapter } from '../../../support/chapter.js';
import { chapterDevices, rulesOf } from '../../../support/rule.js';
import { thrownBy } from '../../../support/wait.js';

defineChapter((target) => {
  describe('15 graphs with collectives of two', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);
    const isOnCpu = target.spec.startsWith('cpu');
    const open = (): Promise<Communicator> => openCommunicator([chapter.device, chapter.other]);
    const join = async (): Promise<JoinedCommunicator[]> => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      const store = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
      await new Promise((resolve) => server.close(resolve));
      const devices = [chapter.device, chapter.other];
      return Promise.all(devices.map((device, rank) => joinCommunicator({ device, rank, size: 2, store })));
    };
    const both = <D extends DType>(ofRank: readonly (readonly number[])[], dtype: D): DeviceArray<D>[] =>
      [chapter.device, chapter.other].map((device, rank) => device.from(ofRank[rank]! as never, { dtype }) as DeviceArray<D>);
    const read = (arrays: readonly (DeviceArray | undefined)[]): Promise<unknown[]> =>
      Promise.all(arrays.map((array) => Promise.resolve(array?.list())));

    rule('S1328', 'a capture that the streams of all ranks join has collectives', async () => {
      await using group = await open();
      const { device, other } = chapter;
      const streams = [device.createStream(), other.createStream()] as const;
      const [first, second] = streams;
      const x = both(
        [
          [1, 2],
          [3, 4],
        ],
        'f32',
      );
      const y = both(
        [
          [0, 0],
          [0, 0],
        ],
        'f32',
      );
      let refused: unknown;
      const graph = first.capture(() => {
        refused = thrownBy(() => group.allReduce(x, { streams, into: y }));
        second.waitStream(first);
        group.allReduce(x, { streams, into: y });
        group.broadcast(y[1]!, { streams, into: x, root: 1 });
        first.waitStream(second);
      });
      expect(refused).toBeInstanceOf(CaptureError);
      expect(refused).toMatchObject({ reason: 'isolation' });
      for (let n = 0; n < 2; n++) first.launch(graph);
      expect(await read(y)).toEqual([
        [8, 12],
        [8, 12],
      ]);
      expect(await read(x)).toEqual([
        [8, 12],
        [8, 12],
      ]);
      await Promise.all([graph.close(), first.close(), second.close()]);
    });

    rule('S1336', 'launches of graphs and calls of two communicators run in the order of the calls', async () => {
      const { device, other } = chapter;
      await using group = await open();
      await using second = await open();
      const streams = [device.createStream(), other.createStream()] as const;
      const x = both([[1], [2]], 'f64');
      const capture = (of: Communicator): Graph =>
        streams[0].capture(() => {
          streams[1].waitStream(streams[0]);
          of.allReduce(x, { streams, into: x });
          // The second graph has collectives of both.
          if (of === second) group.allReduce(x, { streams, into: x, op: 'max' });
          streams[0].waitStream(streams[1]);
        });
      const graphs = [capture(group), capture(second)];
      for (let round = 0; round < 30; round++) {
        if (round % 3 === 2) second.allReduce(x, { into: x });
        else {
          const { done } = streams[0].launch(graphs[round % 3]!);
          if (round % 2 === 0) await done;
        }
      }
      // 3, 6, 12, ...: each takes what the one before made.
      expect(await read(x)).toEqual([[3 * 2 ** 29], [3 * 2 ** 29]]);
      await Promise.all([...graphs.map((graph) => graph.close()), ...streams.map((stream) => stream.close())]);
    });

    rule(
      'S1338',
      'each rank captures its part, and launches of the graphs are calls',
      async () => {
        const ranks = await join();
        const x = both([[1], [2]], 'f32');
        const y = both([[0], [0]], 'f32');
        const sides = ranks.map(({ device }) => device.createStream());
        const graphs = ranks.map((rank, at) =>
          rank.device.stream.capture((s) => {
            rank.allReduce(x[at]!, { into: x[at]! });
            rank.barrier();
            rank.group(() => (at === 0 ? rank.send(x[0]!, { to: 1 }) : rank.receive(y[1]!, { from: 0 })));
            if (at === 1) s.fill(x[1]!, 4);
          }),
        );
        let last = 1.5;
        for (let n = 0; n < 9; n++) {
          const launched = ranks.map((rank, at) => rank.device.stream.launch(graphs[at]!));
          const summed = ranks.map((rank, at) => rank.allReduce(x[at]!, { into: x[at]!, stream: sides[at]! }));
          if (n % 3 === 0) await Promise.all(launched.map(({ done }) => done));
          if (n % 3 === 1) await Promise.all(summed.map(({ done }) => done));
          const sum = 2 * last;
          last = sum + 4;
          if (n % 3 === 2) continue;
          // Of rank 1, the second sum has the 4.
          expect(await read([...x, y[1]])).toEqual([[last], [last], [sum]]);
        }
        await Promise.all([
          ...graphs.map((graph) => graph.close()),
          ...sides.map((side) => side.close()),
          ...ranks.map((rank) => rank.close()),
        ]);
      },
      { unless: isOnCpu && 'their elements go through the event loop' },
    );

    rule(
      'S1338',
      'a capture refuses those of CPU devices of several processes',
      async () => {
        const ranks = await join();
        const x = chapter.device.ones(1);
        let refused: unknown;
        await using graph = chapter.device.stream.capture((s) => {
          refused = thrownBy(() => ranks[0]!.allReduce(x));
          s.fill(x, 2);
        });
        expect(graph.nodes).toHaveLength(1);
        expect(refused).toMatchObject({ name: 'CaptureError', reason: 'unsupported-node' });
        await Promise.all(ranks.map((rank) => rank.barrier().done));
        await Promise.all(ranks.map((rank) => rank.close()));
      },
      { unless: !isOnCpu && 'GPUs are captured' },
    );
  });
});
