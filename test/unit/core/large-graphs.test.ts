// Descriptions and drawings of graphs with many nodes.
import { expect, test } from 'vitest';
import type { CapturedNode } from '../../../src/core/graphs/captured-node.js';
import { dotOf } from '../../../src/core/graphs/graph-dot.js';
import { installLayOut, svgOf } from '../../../src/core/graphs/graph-svg.js';

test('the text for Graphviz takes a time in proportion to the nodes', () => {
  const core = { name: 'cpu:0' };
  const nodes = Array.from(
    { length: 50_000 },
    (_, id) => ({ kind: 'fill', stream: { core, label: `s${id % 2}` }, after: [] }) as unknown as CapturedNode,
  );
  const before = process.cpuUsage();
  const lines = Array.from(dotOf('large', nodes)).join('').split('\n');
  const { user } = process.cpuUsage(before);
  expect(lines.length).toBeGreaterThan(nodes.length);
  // Copying the list of a stream at each of its nodes took minutes.
  expect(user / 1e6).toBeLessThan(2.5);
});

test('the drawing of a large graph is written in parts, between which the event loop has turns', async () => {
  const stream = { core: { name: 'cpu:0' }, label: 'main' };
  const nodes = Array.from(
    { length: 20_000 },
    (_, id) => ({ kind: 'fill', label: undefined, stream, after: id === 0 ? [] : [id - 1] }) as unknown as CapturedNode,
  );
  let parts = 0;
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  installLayOut(async function* (dot) {
    let text = '';
    for await (const part of dot) {
      parts++;
      text += part;
    }
    expect(text.split('\n').filter((line) => / -> /.test(line))).toHaveLength(nodes.length - 1);
    yield `<svg>\n<g id="graph0">\n<title>t</title>\n${nodes.map((_, id) => `<g id="x" class="node"><title>n${id}</title>\n</g>\n`).join('')}</g>\n</svg>\n`;
  });
  setImmediate(count);
  const svg = await svgOf('large', nodes);
  isOver = true;
  expect(svg.match(/<title>n\d+<\/title>/g)).toHaveLength(nodes.length);
  expect(parts).toBeGreaterThan(10);
  // The last part comes with the end of the text, and the first turn may be over before the count begins.
  expect(turns).toBeGreaterThanOrEqual(parts - 2);
});
