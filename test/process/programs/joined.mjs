// One rank of a communicator of several processes: joined.mjs MODES TIMEOUT_MS. The modes are separated by commas. Prints lines of JSON.
import { f32, inout, kernel, openDevice } from 'millrace';
import { joinCommunicator } from 'millrace/collectives';

const [modes, timeout] = process.argv.slice(2);
const timeoutMs = Number(timeout);
const rank = Number(process.env.RANK);
const tell = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const told = (error) => ({
  name: error.name,
  reason: error.reason,
  ranks: error.ranks,
  cause: error.cause?.reason,
  message: error.message.split('\n')[0],
});
const listOf = async (array) => (array === undefined ? null : await array.list());

const device = await openDevice(process.env.DEVICE ?? 'cpu');
const joined = await joinCommunicator({ device, timeoutMs }).catch((error) => error);
if (joined instanceof Error) {
  tell(told(joined));
  await device.close();
  process.exit(0);
}
let group = joined;
const x = device.from([rank, 10 * rank]);
const sum = async () => (await group.allReduce(x).array.list())[0];

/** What the call ends with. */
const ending = (call) => {
  try {
    const { array, done } = call();
    return done.then(
      () => (array?.[Symbol.dispose](), 'done'),
      (error) => (array?.[Symbol.dispose](), told(error)),
    );
  } catch (error) {
    return told(error);
  }
};

const MODES = {
  async all() {
    const { size } = group;
    const rows = device.from(Array.from({ length: size }, (_, at) => 100 * rank + at));
    const given = device.from([rank + 1, 2], { dtype: 'f16' });
    tell([group.rank, size]);
    tell(await listOf(group.allReduce(x).array));
    tell(await listOf(group.allReduce(given, { op: 'mean', into: given }).array));
    tell(await listOf(group.reduce(x, { op: 'max', root: 1 }).array));
    tell(await listOf(group.broadcast(x, { root: 1 }).array));
    tell(await listOf(group.allGather(x).array));
    tell(await listOf(group.reduceScatter(rows, { op: 'max' }).array));
    tell(await listOf(group.allToAll(rows).array));
    const next = (rank + 1) % size;
    const before = (rank + size - 1) % size;
    const from = device.zeros(2);
    const received = group.receive(from, { from: before, stream: device.createStream() });
    await group.send(x, { to: next }).done;
    tell(await listOf(received.array));
    await group.barrier().done;
    // In flight at the same time, on two streams.
    const many = Array.from({ length: 20 }, (_, at) =>
      group.allReduce(device.full(1, at + rank), { stream: at % 3 === 0 ? device.createStream() : device.stream }),
    );
    tell((await Promise.all(many.map(({ array }) => array.list()))).flat());
    tell(await listOf(group.allReduce(device.zeros(0)).array));
  },
  async disagree() {
    tell(await ending(() => group.allReduce(device.zeros(rank === 1 ? 5 : 4))));
    tell(await ending(() => (rank === 0 ? group.barrier() : group.allGather(x))));
    tell(await ending(() => group.allReduce(x, { op: rank === 0 ? 'sum' : 'max' })));
    tell(await ending(() => group.allReduce(rank === 0 ? device.zeros(2, 'i32') : x)));
    tell(await sum());
  },
  async poisoned() {
    const broken = device.zeros(2);
    if (rank === 1) {
      const outside = kernel('outside', { out: inout(f32) }, ({ out }, { i }) => {
        out[i + 1000] = 1;
      });
      await device.stream.launch(outside, 1, { out: broken }).done.catch(() => undefined);
    }
    const { array, done } = group.allReduce(broken);
    tell(await done.then(() => 'done', told));
    tell(await array.read().then(() => 'read', told));
    tell(await sum());
  },
  async late() {
    if (rank === 1) {
      // It lives, and does not come.
      await new Promise((resolve) => setTimeout(resolve, 2 * timeoutMs));
      tell(await ending(() => group.allReduce(x)));
      return;
    }
    tell(await ending(() => group.allReduce(x)));
  },
  async aborted() {
    const first = ending(() => group.allReduce(x));
    await first;
    if (rank === 1) group.abort();
    const last = rank === 1 ? ending(() => group.allReduce(x)) : ending(() => group.barrier());
    tell(await last);
  },
  /** Until a rank is gone; then the others go on. */
  async loop() {
    tell('looping');
    const rows = device.zeros(group.size);
    let error;
    for (let round = 0; error === undefined; round++) {
      const call = [() => group.allReduce(x), () => group.allToAll(rows), () => group.barrier()][round % 3];
      const end = await ending(call);
      if (end !== 'done') error = end;
    }
    tell(error);
    group = await group.shrink();
    tell([group.rank, group.size, await sum()]);
  },
};
for (const mode of modes.split(',')) await MODES[mode]();
await group.close();
await device.close();
