// Chapter 10, thirteenth part: drawings of graphs.
import { describe, expect } from 'vitest';
import { ONE } from '../support/graphs.js';
import { mixKernel } from '../support/kernels.js';
import { chapterDevice, rulesOf } from '../support/rule.js';
import type { Target } from '../support/target.js';

/** What stands between the tags `<text ...>` of the drawing, as a reader sees it. */
function textsOf(svg: string): string[] {
  const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", '#45': '-', '#160': ' ' };
  return [...svg.matchAll(/<text [^>]*>(.*?)<\/text>/g)].map(([, text]) =>
    text!.replaceAll(/&(#?\w+);/g, (all, name: string) => entities[name] ?? all),
  );
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

export function graphDrawings(target: Target): void {
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
      expect(svg).toContain(`<title>1: launch beside on stream side of ${device.info.id}</title>`);
      const drawn = [...svg.matchAll(/<title>(\d+) after (\d+)<\/title>/g)].map(([, to, from]) => `${from},${to}`);
      expect(inOrder(drawn)).toEqual(inOrder(graph.edges.map(String)));
      expect(inOrder([...svg.matchAll(/class="node kind_(\w+)"/g)].map(([, kind]) => kind!))).toEqual(['copy', 'fill', 'launch', 'launch']);
      expect([...svg.matchAll(/class="cluster"/g)]).toHaveLength(2);
      expect(svg).toContain('@media (prefers-color-scheme: dark)');
      await graph.close();
      // The drawing is of the capture, so it outlives the graph.
      expect(await graph.toSvg()).toBe(svg);
      await Promise.all([stream.close(), fork.close()]);
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
}
