// Descriptions of graphs with many nodes.
import { expect, test } from 'vitest';
import { dotOf, type GraphNode } from '../../../src/core/graphs/graph-nodes.js';

test('the text for Graphviz takes a time in proportion to the nodes', () => {
  const nodes = Array.from({ length: 50_000 }, (_, id) => ({ id, kind: 'fill', stream: `s${id % 2}`, device: 'cpu:0' }) as GraphNode);
  const before = process.cpuUsage();
  const lines = dotOf('large', nodes, []).split('\n');
  const { user } = process.cpuUsage(before);
  expect(lines.length).toBeGreaterThan(nodes.length);
  // Copying the list of a stream at each of its nodes took minutes.
  expect(user / 1e6).toBeLessThan(2.5);
});
