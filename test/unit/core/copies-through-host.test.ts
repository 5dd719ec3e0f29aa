// Copies between devices of two backends, which go through host memory: when they are refused, and the arrays that their failure poisons.
import { describe, expect, test } from 'vitest';
import { LimitError } from '../../../src/core/base/errors.js';
import { CopyFlag, CopyRecord, Status } from '../../../src/protocol/protocol.gen.js';
import { World } from './simulated.js';

describe('a copy through host memory', () => {
  test('is refused before its first record, and works if maxPending is smaller than its number of records', () => {
    const world = new World();
    const [one, other] = [world.add('cuda', 'cuda:0'), world.add('cpu', 'cpu:0')];
    const [x, y] = [one.device.empty([2, 40 * 2 ** 20], 'u8'), other.device.empty([40 * 2 ** 20, 2], 'u8')];
    const before = world.channels.map(({ records }) => records.length);
    // Room for the gather, not for the pieces.
    world.channels[0]!.pendingRecords = 84;
    expect(() => one.device.stream.copy(y, x.transpose())).toThrow(LimitError);
    expect(world.channels[0]!.records).toHaveLength(before[0]!);
    world.channels[0]!.pendingRecords = 0;
    Object.assign(world.channels[0]!, { maxPending: 8 });
    one.device.stream.copy(y, x.transpose());
  });

  test.each([
    ['whole', 0, 3],
    ['in part', 1, 1],
  ])('marks its records as staged, and the piece that begins to overwrite the whole destination (%s)', (_, dstOffset, firstArrives) => {
    const world = new World();
    const [one, other] = [world.add('cuda', 'cuda:0'), world.add('cpu', 'cpu:0')];
    const count = 70 * 2 ** 20;
    const [x, y] = [one.device.empty(count, 'u8'), other.device.empty(count, 'u8')];
    one.device.stream.copy(y, x, { dstOffset, count: count - dstOffset });
    const flags = [one, other].map(({ channel }) =>
      channel.records.filter(({ opcode }) => opcode === 'COPY').map(({ view }) => view.getUint32(CopyRecord.FLAGS, true)),
    );
    expect(flags).toEqual([
      [CopyFlag.STAGED, CopyFlag.STAGED, CopyFlag.STAGED],
      [firstArrives, CopyFlag.STAGED, CopyFlag.STAGED],
    ]);
  });

  test.each([false, true])(
    'to another backend fails with the failure of its records (from a stream of a third device: %s)',
    async (isThird) => {
      const world = new World();
      const [one, other, third] = [world.add('cuda', 'cuda:0'), world.add('cpu', 'cpu:0'), world.add('cpu', 'cpu:1')];
      const [x, y] = [one.device.zeros(24, 'i16'), other.device.zeros(24, 'i16')];
      const operation = (isThird ? third : one).device.stream.copy(y, x);
      const failed = expect(operation.done).rejects.toMatchObject({ name: 'UpstreamError' });
      const poisoning = [one, isThird ? third : other].map(({ channel }, at) => {
        const { stream, ticket } = channel.records.findLast(({ opcode }) => opcode === 'COPY')!;
        // Like the devices: the second copy fails if the first copy failed.
        channel.fail(stream, { id: at + 1, first: ticket, last: ticket, status: Status.UPSTREAM, cause: 9 });
        return ticket;
      });
      expect(poisoning).toHaveLength(2);
      await world.settle();
      await failed;
    },
  );
});
