// A graph with a copy of pinned memory that the driver did not page-lock.
import { openDevice } from 'millrace';

process.on('warning', () => undefined);
const device = await openDevice('cuda');
const { stream } = device;
const pinned = device.pinned(3 * 2 ** 26);
const [x, y] = [stream.zeros(4), stream.zeros(4)];
await stream.copy(x, pinned, { count: 4 }).done;
const graph = stream.capture((s) => {
  s.fill(y, 1);
  s.copy(x, pinned, { count: 4 });
});
for (const submit of [() => stream.launch(graph), () => stream.launch(graph), () => graph.upload(stream)]) {
  const error = await submit().done.then(
    () => undefined,
    (reason) => reason,
  );
  console.log(`${error?.name} ${error?.message}`);
}
process.exit();
