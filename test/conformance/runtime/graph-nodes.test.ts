// Chapter 10, eighth part: the nodes and edges that a graph shows, and graphs in graphs.
import { describe, expect } from 'vitest';
import { inout, input, kernel, StateError, u32, i32, type Device, type DeviceArray, type Recorder, type Stream } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { nodeOf, ONE, orderedPairs, orderOf, weaveKernel, workOf } from '../../support/graphs.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, thrownBy } from '../../support/wait.js';

/** A launch of one element that reads `x`, reads and writes `y`, and has a name. */
const weave = (s: Recorder, label: string, x: DeviceArray<'u32'>, y: DeviceArray<'u32'>): unknown =>
  s.launch(weaveKernel, { ...ONE, label }, { x, y, k: 1 });

const turningKernel = kernel('turning', { x: inout(u32), turns: i32 }, ({ x, turns }, t) => {
  const { i } = t;
  for (let turn = 0; turn < turns; turn++) {
    const other = x[x.length - 1 - i]!;
    t.gridSync();
    x[i] = x[i]! + other + t.u32(i);
    t.gridSync();
  }
});

const arraysOf = (device: Device, count: number): DeviceArray<'u32'>[] => Array.from({ length: count }, () => device.zeros(1, 'u32'));

defineChapter((target) => {
  describe('10 graphs: nodes and edges', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1016', 'nodes have kind, label, device and stream, in the order of the calls', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream({ label: 'trunk' }), device.createStream({ label: 'branch' })];
      using x = device.zeros(4, 'u32');
      using y = device.zeros(4, 'u32');
      const graph = stream.capture((s) => {
        s.fill(x, 1);
        fork.waitStream(stream);
        fork.launch(mixKernel, ONE, { x: y, k: 1 });
        s.launch(mixKernel, { ...ONE, label: 'named' }, { x, k: 1 });
        fork.copy(y.subarray(0, 2), x.subarray(2), { label: 'across' });
        s.waitStream(fork);
        s.copy(x, y);
      });
      const seen = workOf(graph).map(({ kind, label, device: on, stream: of }) => [kind, label, on, of]);
      const { id } = device.info;
      expect(seen).toEqual([
        ['fill', undefined, id, 'trunk'],
        ['launch', 'mix', id, 'branch'],
        ['launch', 'named', id, 'trunk'],
        ['copy', 'across', id, 'branch'],
        ['copy', undefined, id, 'trunk'],
      ]);
      const ids = graph.nodes.map((node) => node.id);
      expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
      for (const [from, to] of graph.edges) {
        expect([ids.includes(from), ids.includes(to), from < to]).toEqual([true, true, true]);
      }
      await graph.close();
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1016', 'operations of one stream follow each other, also on explicit streams and on different arrays', async () => {
      const { device } = chapter;
      const stream = device.createStream({ ordering: 'explicit' });
      const [x, a, b, c] = arraysOf(device, 4);
      const graph = stream.capture((s) => {
        weave(s, 'a', x!, a!);
        weave(s, 'b', x!, b!);
        weave(s, 'c', x!, c!);
      });
      expect(orderedPairs(graph, 'a', 'b', 'c')).toEqual(['a<b', 'a<c', 'b<c']);
      await graph.close();
      await stream.close();
    });

    rule('S1016', 'a fork and a join by events: what both branches follow, and what follows both', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
      const [x, ...y] = arraysOf(device, 6);
      const graph = stream.capture((s) => {
        weave(s, 'root', x!, y[0]!);
        fork.waitEvent(s.record());
        weave(s, 'left', x!, y[1]!);
        weave(fork, 'right', x!, y[2]!);
        const joined = fork.record();
        weave(fork, 'late', x!, y[3]!);
        s.waitEvent(joined);
        weave(s, 'end', x!, y[4]!);
      });
      expect(orderedPairs(graph, 'root', 'left', 'right', 'late', 'end')).toEqual([
        'root<left',
        'root<right',
        'root<late',
        'root<end',
        'left<end',
        'right<late',
        'right<end',
      ]);
      await graph.close();
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1016', 'a diamond by tracked arrays alone', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 4 }, () => device.createStream());
      const [x, a, b, c, d] = arraysOf(device, 5);
      const graph = streams[0]!.capture((s) => {
        for (const other of streams.slice(1)) other.waitStream(streams[0]!);
        weave(s, 'top', x!, a!);
        weave(streams[1]!, 'left', a!, b!);
        weave(streams[2]!, 'right', a!, c!);
        weave(streams[3]!, 'both', b!, d!);
        weave(streams[3]!, 'bottom', c!, d!);
      });
      expect(orderedPairs(graph, 'top', 'left', 'right', 'both', 'bottom')).toEqual([
        'top<left',
        'top<right',
        'top<both',
        'top<bottom',
        'left<both',
        'left<bottom',
        'right<bottom',
        'both<bottom',
      ]);
      await graph.close();
      await Promise.all(streams.map((one) => one.close()));
    });

    rule('S1016', 'independent branches have no edge, and neither have disjoint parts of one array', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      using x = device.zeros(8, 'u32');
      using y = device.zeros(8, 'u32');
      const graph = stream.capture((s) => {
        fork.waitStream(stream);
        for (let n = 0; n < 4; n++) {
          s.copy(y.subarray(0, 4), x.subarray(0, 4), { label: `left ${n}` });
          fork.copy(y.subarray(4), x.subarray(0, 4), { label: `right ${n}` });
        }
      });
      const isBefore = orderOf(graph);
      for (let n = 0; n < 4; n++) {
        for (let m = 0; m < 4; m++) {
          const [left, right] = [nodeOf(graph, `left ${n}`), nodeOf(graph, `right ${m}`)];
          expect([isBefore(left, right), isBefore(right, left)], `${n} ${m}`).toEqual([false, false]);
        }
      }
      await graph.close();
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1016', 'a tracked write comes after earlier reads, and readers have no order', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 3 }, () => device.createStream());
      const [x, a, b] = arraysOf(device, 3);
      const graph = streams[0]!.capture((s) => {
        for (const other of streams.slice(1)) other.waitStream(streams[0]!);
        weave(s, 'first reader', x!, a!);
        weave(streams[1]!, 'second reader', x!, b!);
        streams[2]!.launch(mixKernel, { ...ONE, label: 'writer' }, { x: x!, k: 1 });
        streams[0]!.copy(a!, x!, { label: 'after' });
      });
      expect(orderedPairs(graph, 'first reader', 'second reader', 'writer', 'after')).toEqual([
        'first reader<writer',
        'first reader<after',
        'second reader<writer',
        'second reader<after',
        'writer<after',
      ]);
      await graph.close();
      await Promise.all(streams.map((one) => one.close()));
    });

    rule('S1016', 'explicit streams add no edges by their arrays, but tracked ones wait for their uses', async () => {
      const { device } = chapter;
      const [stream, explicit, tracked] = [
        device.createStream({ ordering: 'explicit' }),
        device.createStream({ ordering: 'explicit' }),
        device.createStream(),
      ];
      const [x, y] = arraysOf(device, 2);
      const graph = stream.capture((s) => {
        explicit.waitStream(stream);
        tracked.waitStream(stream);
        s.launch(mixKernel, { ...ONE, label: 'one' }, { x: x!, k: 1 });
        explicit.launch(mixKernel, { ...ONE, label: 'two' }, { x: y!, k: 1 });
        weave(tracked, 'three', y!, x!);
        explicit.launch(mixKernel, { ...ONE, label: 'four' }, { x: x!, k: 1 });
      });
      expect(orderedPairs(graph, 'one', 'two', 'three', 'four')).toEqual(['one<three', 'two<three', 'two<four']);
      await graph.close();
      await Promise.all([stream.close(), explicit.close(), tracked.close()]);
    });

    rule('S1016', 'a slot orders the nodes that use it as an array does', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 3 }, () => device.createStream());
      const [a, b] = arraysOf(device, 2);
      const graph = streams[0]!.capture({ x: input(u32) }, (s, { x }) => {
        for (const other of streams.slice(1)) other.waitStream(streams[0]!);
        s.launch(weaveKernel, { ...ONE, label: 'one' }, { x, y: a!, k: 1 });
        streams[1]!.launch(weaveKernel, { ...ONE, label: 'two' }, { x, y: b!, k: 1 });
        streams[2]!.launch(weaveKernel, { ...ONE, label: 'three' }, { x, y: b!, k: 1 });
      });
      expect(orderedPairs(graph, 'one', 'two', 'three')).toEqual(['two<three']);
      await graph.close();
      await Promise.all(streams.map((one) => one.close()));
    });

    rule('S1016', 'toDot names every node and edge in the language of Graphviz', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream({ label: 'a "quoted" trunk' }), device.createStream({ label: 'branch' })];
      const [x, y, z] = arraysOf(device, 3);
      const graph = stream.capture(
        (s) => {
          weave(s, 'first \\ "node"', x!, y!);
          fork.waitStream(stream);
          weave(fork, 'second', x!, z!);
          weave(s, 'third', x!, y!);
        },
        { label: 'the "drawing"' },
      );
      const dot = graph.toDot();
      expect(dot).toMatch(/^\s*(strict\s+)?digraph\b/);
      // Without quoted strings, braces are in balance, and there is one arrow for each edge.
      const bare = dot.replace(/"(?:\\.|[^"\\])*"/g, 'text');
      expect(bare).not.toContain('"');
      expect(bare.split('{').length).toBe(bare.split('}').length);
      expect(bare.match(/->/g) ?? []).toHaveLength(graph.edges.length);
      for (const text of ['second', 'third', 'branch']) expect(dot).toContain(text);
      await graph.close();
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1016', 'toDot has a cluster for each body of a condition', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      using value = device.zeros(1, 'i32');
      const work = (s: Recorder): void => void s.launch(mixKernel, { ...ONE, label: 'inside' }, { x, k: 1 });
      const graph = stream.capture((s) => {
        s.captureIf(value, work, work);
        s.captureSwitch(value, [work, (body) => void body.captureIf(value, work)]);
      });
      const clusters = [...graph.toDot().matchAll(/subgraph cluster_\w+ \{\s+label="(.*?)"/g)].map(([, label]) => label);
      expect(clusters).toEqual([stream.label, 'then', 'else', 'case 0', 'case 1', 'then']);
      expect(graph.toDot().match(/label="launch\\ninside"/g)).toHaveLength(4);
      await graph.close();
      await stream.close();
    });

    rule('S1017', 'a graph that is launched in a capture becomes nodes of it, with the values of that call', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      using other = device.zeros(1, 'u32');
      const inner = stream.capture({ k: u32 }, (s, { k }) => {
        s.launch(mixKernel, { ...ONE, label: 'inside' }, { x, k });
        s.launch(mixKernel, ONE, { x, k: 1000 });
      });
      const outer = stream.capture({ k: u32 }, (s, { k }) => {
        s.launch(mixKernel, { ...ONE, label: 'before' }, { x, k });
        s.launch(inner, { k: 20 });
        s.launch(inner, { k: 30 });
        s.launch(mixKernel, { ...ONE, label: 'after' }, { x, k });
        s.launch(mixKernel, ONE, { x: other, k });
      });
      expect((await x.read())[0]).toBe(0);
      expect(workOf(outer).map(({ label }) => label)).toEqual(['before', 'inside', 'mix', 'inside', 'mix', 'after', 'mix']);
      const joins = outer.nodes.filter(({ kind }) => kind === 'empty');
      expect(joins.map(({ id, label }) => [id, label])).toEqual([
        [3, inner.label],
        [6, inner.label],
      ]);
      expect(orderedPairs(outer, 'before', 'after')).toEqual(['before<after']);
      let expected = 0;
      for (let n = 0; n < 3; n++) {
        stream.launch(outer, { k: n });
        stream.launch(inner, { k: 50 + n });
        for (const k of [n, 20, 1000, 30, 1000, n, 50 + n, 1000]) expected = mixed(expected, k, 1);
        expect((await x.read())[0]).toBe(expected);
      }
      await Promise.all([inner.close(), outer.close()]);
      await stream.close();
    });

    rule('S1017', 'a graph in a graph keeps its branches, and comes before what its stream gets later', async () => {
      const { device } = chapter;
      const [stream, fork, further] = [device.createStream(), device.createStream(), device.createStream()];
      const [x, a, b, c, d] = arraysOf(device, 5);
      const inner = stream.capture((s) => {
        fork.waitStream(stream);
        weave(s, 'left', x!, a!);
        weave(fork, 'right', x!, b!);
      });
      const outer = stream.capture((s) => {
        further.waitStream(stream);
        weave(s, 'before', x!, c!);
        s.launch(inner);
        weave(s, 'after', x!, c!);
        weave(further, 'beside', x!, d!);
        weave(further, 'by array', b!, d!);
      });
      expect(orderedPairs(outer, 'before', 'left', 'right', 'after')).toEqual([
        'before<left',
        'before<right',
        'before<after',
        'left<after',
        'right<after',
      ]);
      expect(orderedPairs(outer, 'right', 'beside', 'by array')).toEqual(['right<by array', 'beside<by array']);
      // The inner graph is one operation of its stream: what uses one of its arrays comes after all of it.
      expect(orderedPairs(outer, 'left', 'by array')).toEqual(['left<by array']);
      await Promise.all([inner.close(), outer.close()]);
      await Promise.all([stream.close(), fork.close(), further.close()]);
    });

    rule('S1017', 'copies of an embedded graph with grid barriers run at the same time, also beside the graph', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 3 }, () => device.createStream({ ordering: 'explicit' }));
      const [trunk, fork, beside] = streams as [Stream, Stream, Stream];
      const cells = 64;
      const shape = { threads: cells, block: 16, cooperative: true } as const;
      const arrays = streams.map((stream) => stream.zeros(cells, 'u32'));
      const inner = trunk.capture({ x: inout(u32) }, (s, { x }) => void s.launch(turningKernel, shape, { x, turns: 20 }));
      const outer = trunk.capture((s) => {
        fork.waitStream(trunk);
        s.launch(inner, { x: arrays[0]! });
        fork.launch(inner, { x: arrays[1]! });
        s.waitStream(fork);
      });
      await device.synchronize();
      const rounds = 25;
      for (let round = 0; round < rounds; round++) {
        trunk.launch(outer);
        beside.launch(inner, { x: arrays[2]! });
      }
      await inner.close();
      await Promise.all(streams.map((stream) => stream.synchronize()));
      // Each turn adds the value of the other end, from before the turn.
      let expected = Uint32Array.from({ length: cells }, () => 0);
      for (let turn = 0; turn < 20 * rounds; turn++) expected = expected.map((value, at) => value + expected[cells - 1 - at]! + at);
      for (const array of arrays) expect(await array.read()).toEqual(expected);
      await outer.close();
      for (const array of arrays) array[Symbol.dispose]();
      await Promise.all(streams.map((stream) => stream.close()));
    });

    rule('S1017', 'the outer graph goes on after the inner one was closed, also with arrays that the inner one made', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using y = device.zeros(4, 'u32');
      const calls: string[] = [];
      const inner = stream.capture((s) => {
        using made = s.full(4, 5, 'u32');
        s.launch(mixKernel, ONE, { x: made, k: 2 });
        s.copy(y, made);
        s.host(() => calls.push('inner'));
      });
      const outer = stream.capture((s) => {
        s.host(() => calls.push('before'));
        s.launch(inner);
        s.host(() => calls.push('after'));
      });
      await inner.close();
      expect(thrownBy(() => stream.capture((s) => void s.launch(inner)))).toBeInstanceOf(StateError);
      using others = device.full(4, 9, 'u32');
      for (let n = 1; n <= 2; n++) {
        device.stream.fill(y, 0);
        await stream.launch(outer).done;
        expect([...(await y.read())]).toEqual([mixed(5, 2, 1), 5, 5, 5]);
        await eventually('the host functions were called', () => calls.length >= 3 * n);
      }
      expect(calls).toEqual(['before', 'inner', 'after', 'before', 'inner', 'after']);
      expect((await others.read())[0]).toBe(9);
      await outer.close();
      await stream.close();
    });
  });
});
