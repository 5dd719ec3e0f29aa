// Chapter 10, thirteenth part: drawings of graphs.
import { describe, expect } from 'vitest';
import type { Recorder, Stream } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE } from '../../support/graphs.js';
import { mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

/** What stands between the tags `<text ...>` of the drawing, as a reader sees it. */
function textsOf(svg: string): string[] {
  const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", '#45': '-', '#160': ' ' };
  return [...svg.matchAll(/<text [^>]*>(.*?)<\/text>/g)].map(([, text]) =>
    text!.replaceAll(/&(#?\w+);/g, (all, name: string) => entities[name] ?? all),
  );
}

/** A group of the drawing. */
interface Drawn {
  readonly kinds: string;
  /** Graphviz's: 'n0', for a node of a body 'n0_1_0', for an edge 'n0->n1'. */
  readonly name: string;
  /** '' for a frame and an edge. */
  readonly tooltip: string;
  readonly texts: readonly string[];
  readonly hasShape: boolean;
  /** Of the shapes and the places of the texts. */
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

function drawnIn(svg: string): Drawn[] {
  return [...svg.matchAll(/<g id="[^"]*" class="((?:node|cluster|edge)\b[^"]*)">(.*?)<\/g>/gs)].map(([, kinds, group]) => {
    const [xs, ys]: [number[], number[]] = [[], []];
    for (const [, outline] of group!.matchAll(/ (?:d|points)="([^"]*)"/g)) {
      for (const [, x, y] of outline!.matchAll(/(-?[\d.]+),(-?[\d.]+)/g)) {
        xs.push(Number(x));
        ys.push(Number(y));
      }
    }
    for (const [, cx, cy, rx, ry] of group!.matchAll(/<(?:circle|ellipse)\b.*? cx="(.*?)" cy="(.*?)" rx?="(.*?)"(?: ry="(.*?)")?/g)) {
      xs.push(Number(cx) - Number(rx), Number(cx) + Number(rx));
      ys.push(Number(cy) - Number(ry ?? rx), Number(cy) + Number(ry ?? rx));
    }
    const hasShape = xs.length > 0;
    for (const [, x, y] of group!.matchAll(/<text [^>]*\bx="([^"]*)" y="([^"]*)"/g)) {
      xs.push(Number(x));
      ys.push(Number(y));
    }
    const [, title = ''] = /<title>(.*?)<\/title>/.exec(group!) ?? [];
    const name = title.replace('&#45;&gt;', '->');
    const [, tooltip = ''] = /xlink:title="(.*?)"/.exec(group!) ?? [];
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    return { kinds: kinds!, name, tooltip, hasShape, texts: textsOf(group!), left, right, top, bottom };
  });
}

const isAround = (frame: Drawn, { left, right, top, bottom }: Drawn): boolean =>
  frame.left < left && right < frame.right && frame.top < top && bottom < frame.bottom;

/** The edges, of bodies too, whose second node is not below the first one. */
function notDownwards(svg: string): string[] {
  const drawn = drawnIn(svg);
  const nodes = new Map(drawn.map((one) => [one.name, one]));
  return drawn.flatMap(({ kinds, name }) => {
    if (kinds !== 'edge') return [];
    // The node of an empty body is invisible.
    const [before, after] = name.split('->').map((end) => nodes.get(end));
    return after === undefined || before!.bottom < after.top ? [] : [name];
  });
}

/** The edges between the nodes of the graph, as `graph.edges` has them. */
function edgesIn(svg: string): string[] {
  return drawnIn(svg).flatMap(({ kinds, name }) => (kinds === 'edge' ? [name.replaceAll('n', '').replace('->', ',')] : []));
}

const inOrder = (texts: readonly string[]): string[] => texts.toSorted((a, b) => (a < b ? -1 : 1));

/** The tags that are open at the end, or closed without having been opened: none in well-formed XML. */
function unbalanced(svg: string): string[] {
  const open: string[] = [];
  for (const [, end, name, self] of svg.matchAll(/<(\/?)([a-z]+)\b[^<>]*?(\/?)>/gi)) {
    if (self === '/') continue;
    if (end === '') open.push(name!);
    else if (open.pop() !== name) return [`</${name}>`];
  }
  return open;
}

defineChapter((target) => {
  describe('10 graphs: drawings', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1030', 'a drawing has every node with its kind and label, every edge, and a frame for each stream', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream({ label: 'main' }), device.createStream({ label: 'side' })];
      using x = device.zeros(4, 'u32');
      using y = device.zeros(4, 'u32');
      const graph = stream.capture(
        (s) => {
          s.fill(x, 1);
          fork.waitStream(stream);
          fork.launch(mixKernel, { ...ONE, label: 'beside' }, { x, k: 1 });
          s.launch(mixKernel, ONE, { x: y, k: 2 });
          s.waitStream(fork);
          s.copy(y, x, { label: 'back' });
        },
        { label: 'drawn' },
      );
      const svg = await graph.toSvg();
      expect(svg.startsWith('<svg ')).toBe(true);
      expect(unbalanced(svg)).toEqual([]);
      expect(inOrder(textsOf(svg))).toEqual(['back', 'beside', 'copy', 'fill', 'launch', 'launch', 'main', 'mix', 'side']);
      expect(svg).toContain('<title>Graph drawn (4 nodes)</title>');
      expect(svg).toContain(`xlink:title="1: launch beside on stream side of ${device.info.id}"`);
      expect(inOrder(edgesIn(svg))).toEqual(inOrder(graph.edges.map(String)));
      expect(inOrder([...svg.matchAll(/class="node (\w+)"/g)].map(([, kind]) => kind!))).toEqual(['copy', 'fill', 'launch', 'launch']);
      expect([...svg.matchAll(/class="cluster"/g)]).toHaveLength(2);
      expect(svg).toContain('@media (prefers-color-scheme: dark)');
      await graph.close();
      // The drawing is of the capture, so it outlives the graph.
      expect(await graph.toSvg()).toBe(svg);
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1030', 'each body of a condition is a frame with its nodes and edges, to which an arrow leads', async () => {
      const { device } = chapter;
      const stream = device.createStream({ label: 'main' });
      using x = device.zeros(4, 'u32');
      using value = device.zeros(1, 'i32');
      const work = (s: Recorder, label: string): void => void s.launch(mixKernel, { ...ONE, label }, { x, k: 1 });
      const part = stream.capture((s) => work(s, 'of the graph'));
      const graph = stream.capture((s) => {
        s.captureIf(
          value,
          (body) => {
            work(body, 'before');
            body.captureWhile(value, (inner) => {
              work(inner, 'step');
              inner.fill(value, 0);
            });
          },
          (body) => void body.captureSwitch(value, [(inner) => work(inner, 'first'), () => undefined, part]),
        );
        work(s, 'end');
      });
      const svg = await graph.toSvg();
      expect(unbalanced(svg)).toEqual([]);
      const drawn = drawnIn(svg);
      const inBodies = ['before', 'while', 'step', 'fill', 'switch', 'first', 'of the graph', 'empty'];
      const nodes = drawn.filter(({ kinds }) => kinds.startsWith('node'));
      expect(inOrder(nodes.map(({ texts }) => texts.at(-1)!))).toEqual(inOrder(['if', 'end', ...inBodies]));
      const frames = drawn.filter(({ kinds }) => kinds === 'cluster body');
      const contents = frames.map((frame) => [
        frame.texts.join(),
        ...nodes.filter((node) => isAround(frame, node)).map(({ texts }) => texts.at(-1)!),
      ]);
      expect(inOrder(contents.map(([title, ...inside]) => `${title}: ${inOrder(inside).join(', ')}`))).toEqual([
        'case 0: first',
        'case 1: ',
        'case 2: empty, of the graph',
        'do: fill, step',
        'else: empty, first, of the graph, switch',
        'then: before, fill, step, while',
      ]);
      const arrows = drawn.filter(({ kinds }) => kinds === 'edge').map(({ name }) => name);
      expect(inOrder(arrows)).toEqual([
        'n0->n0_0_0',
        'n0->n0_1_0',
        'n0->n1',
        'n0_0_0->n0_0_1',
        'n0_0_1->n0_0_1_0_0',
        'n0_0_1_0_0->n0_0_1_0_1',
        'n0_1_0->n0_1_0_0_0',
        'n0_1_0->n0_1_0_1_',
        'n0_1_0->n0_1_0_2_0',
        'n0_1_0_2_0->n0_1_0_2_1',
      ]);
      // The arrows end at the frames, and what follows the condition is below them.
      for (const [title, runs] of [
        ['then', 'n0->n0_0_0'],
        ['case 1', 'n0_1_0->n0_1_0_1_'],
      ] as const) {
        const [frame, arrow] = [frames.find(({ texts }) => texts[0] === title)!, drawn.find(({ name }) => name === runs)!];
        expect(Math.abs(arrow.bottom - frame.top)).toBeLessThan(5);
      }
      const end = nodes.find(({ texts }) => texts.at(-1) === 'end')!;
      for (const { bottom } of frames) expect(bottom).toBeLessThan(end.top);
      expect(notDownwards(svg)).toEqual([]);
      await Promise.all([graph.close(), part.close()]);
      await stream.close();
    });

    rule('S1030', 'the join of an embedded graph is its label without a shape', async () => {
      const { device } = chapter;
      const [stream, fork, outer] = ['left', 'right', 'main'].map((label) => device.createStream({ label }));
      using x = device.zeros(4, 'u32');
      using y = device.zeros(4, 'u32');
      const inner = stream!.capture(
        (s) => {
          fork!.waitStream(s);
          s.fill(x, 1);
          fork!.fill(y, 1);
        },
        { label: 'an inner graph' },
      );
      const graph = outer!.capture((s) => {
        s.fill(x, 2);
        s.launch(inner);
        s.copy(x, y);
      });
      const svg = await graph.toSvg();
      const join = drawnIn(svg).find(({ kinds }) => kinds === 'node empty')!;
      expect(join.texts).toEqual(['empty', 'an inner graph']);
      expect(join.hasShape).toBe(false);
      expect(join.tooltip).toBe(`3: empty an inner graph on stream main of ${device.info.id}`);
      expect(inOrder(edgesIn(svg))).toEqual(inOrder(graph.edges.map(String)));
      expect(notDownwards(svg)).toEqual([]);
      await Promise.all([inner.close(), graph.close()]);
      await Promise.all([stream!, fork!, outer!].map((one) => one.close()));
    });

    rule('S1030', 'arrows between streams point downwards', async () => {
      const { device } = chapter;
      const streams = ['a', 'b', 'c'].map((label) => device.createStream({ label }));
      const [a, b, c] = streams as [Stream, Stream, Stream];
      const arrays = streams.map(() => device.zeros(4, 'u32'));
      const graph = a.capture((s) => {
        s.fill(arrays[0]!, 1);
        for (const other of [b, c]) other.waitStream(a);
        for (let n = 0; n < 3; n++) {
          for (const [nth, stream] of streams.entries()) stream.launch(mixKernel, ONE, { x: arrays[nth]!, k: n });
          for (const [to, from] of [
            [a, b],
            [b, c],
            [c, a],
          ] as const)
            to.waitStream(from);
        }
        b.fill(arrays[1]!, 1);
        b.fill(arrays[1]!, 2);
        for (const other of [b, c]) a.waitStream(other);
        s.copy(arrays[0]!, arrays[1]!);
      });
      // Graphviz ranks each cluster by itself unless told otherwise: the second copy of the graph is then beside the first one.
      const step = b.capture((s) => void s.fill(arrays[1]!, 1));
      const twice = a.capture((s) => {
        s.launch(step);
        s.launch(step);
      });
      for (const one of [graph, twice]) expect(notDownwards(await one.toSvg())).toEqual([]);
      await Promise.all([graph, step, twice].map((one) => one.close()));
      for (const array of arrays) array[Symbol.dispose]();
      await Promise.all(streams.map((stream) => stream.close()));
    });

    rule('S1030', 'labels may have any characters and any length', async () => {
      const { device } = chapter;
      using x = device.zeros(1, 'u32');
      const labels = ['a < b && "c" > \'d\'', '</text><script>', '\\n{}|\\', '日本 🙂', '', 'line\nbreak\u0000\uD800', 'w'.repeat(500)];
      const streams = labels.map((label) => device.createStream({ label }));
      const graph = device.stream.capture((s) => {
        s.fill(x, 0);
        for (const stream of streams) {
          stream.waitStream(device.stream);
          stream.launch(mixKernel, { ...ONE, label: stream.label }, { x, k: 1 });
        }
      });
      const svg = await graph.toSvg();
      expect(unbalanced(svg)).toEqual([]);
      expect(svg).not.toContain('<script');
      const texts = textsOf(svg);
      for (const label of labels.slice(0, 4)) expect(texts.filter((text) => text === label)).toHaveLength(2);
      expect(texts.filter((text) => text === 'line break')).toHaveLength(2);
      expect(texts.filter((text) => text === `${'w'.repeat(47)}…`)).toHaveLength(2);
      // No label is wider than the shape that it stands in: 0.61 of its size is the widest advance of the fonts.
      for (const [group] of svg.matchAll(/<g id="[^"]*" class="(?:node|cluster)\b.*?<\/g>/gs)) {
        const [, outline] = / (?:d|points)="([^"]*)"/.exec(group) ?? [];
        if (outline === undefined) continue;
        const xs = [...outline.matchAll(/(-?[\d.]+),/g)].map(([, at]) => Number(at));
        for (const [, size, text] of group.matchAll(/<text [^>]*font-size="([\d.]+)"[^>]*>(.*?)<\/text>/g)) {
          const [shown] = textsOf(`<text >${text}</text>`);
          expect(Array.from(shown!).length * 0.61 * Number(size)).toBeLessThan(Math.max(...xs) - Math.min(...xs));
        }
      }
      await graph.close();
      await Promise.all(streams.map((stream) => stream.close()));
    });
  });
});
