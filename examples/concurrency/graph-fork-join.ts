// One capture that forks over two streams and joins them again. The second stream is one of another device, if there is one.
import assert from 'node:assert/strict';
import { f32, input, kernel, output, type Device } from 'millrace';
import { addTo, square } from './kernels.js';

const sum = kernel('sum', { a: input(f32), b: input(f32), y: output(f32) }, ({ a, b, y }, { i }) => {
  y[i] = a[i]! + b[i]!;
});

export async function run([first, second]: readonly [Device, Device]): Promise<void> {
  const n = 4096;
  await Promise.all([first.compile(addTo, square, sum), second.compile(square)]);
  const left = first.createStream({ label: 'left' });
  const right = second.createStream({ label: 'right' });
  using source = left.zeros(n);
  using squares = left.empty(n);
  using result = left.empty(n);

  const graph = left.capture(
    { value: f32 },
    (stream, { value }) => {
      stream.launch(addTo, { threads: n, label: 'source' }, { x: source, value });
      right.waitStream(left); // the fork: from here on, `right` is captured, too
      stream.launch(square, { threads: n, label: 'left' }, { x: source, y: squares });
      // What the graph allocates belongs to it.
      const [there, squaresThere, back] = [right.empty(n), right.empty(n), stream.empty(n)];
      right.copy(there, source, { label: 'over' });
      right.launch(square, { threads: n, label: 'right' }, { x: there, y: squaresThere });
      right.copy(back, squaresThere, { label: 'back' });
      stream.waitStream(right); // the join
      stream.launch(sum, { threads: n, label: 'sum' }, { a: squares, b: back, y: result });
    },
    { label: 'fork and join', strict: true },
  );

  // The branches have no order between them; the fork comes before both, the join after both.
  const id = (label: string): number => graph.nodes.findIndex((node) => node.label === label);
  const comesAfter = (to: number, from: number): boolean => graph.edges.some(([a, b]) => b === to && (a === from || comesAfter(a, from)));
  for (const branch of ['left', 'right']) {
    assert.ok(comesAfter(id(branch), id('source')));
    assert.ok(comesAfter(id('sum'), id(branch)));
  }
  assert.ok(!comesAfter(id('left'), id('right')) && !comesAfter(id('right'), id('left')));
  assert.deepEqual([graph.nodes[id('left')]!.device, graph.nodes[id('right')]!.device], [first.info.id, second.info.id]);

  // Every launch adds its value to the source, and the last one leaves 2 * 15 * 15.
  for (const value of [1, 2, 3, 4, 5]) left.launch(graph, { value });
  assert.ok((await result.read()).every((value) => value === 450));

  await graph.close();
  await Promise.all([left.close(), right.close()]);
}
