// The colours of the page of a timeline can be read and told apart (WCAG 2.2, 1.4.1, 1.4.3 and 1.4.11).
import { describe, expect, test } from 'vitest';
import { CHROME, DIMMED, FAMILIES, LOOKS, type Theme } from '../../../page/palette.js';

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5]
    .map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].toSorted((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

describe.each(['light', 'dark'] as const satisfies readonly Theme[])('the %s theme', (theme) => {
  const { back, band, text, faint, accent } = CHROME[theme];

  test('texts have a contrast of 4.5 to what is behind them', () => {
    expect(contrast('#000000', '#ffffff')).toBe(21);
    for (const ink of [text, faint, accent])
      for (const ground of [back, band]) expect([ink, ground, contrast(ink, ground) >= 4.5]).toEqual([ink, ground, true]);
    for (const family of FAMILIES) expect([family, contrast(...LOOKS[family][theme]) >= 4.5]).toEqual([family, true]);
  });

  test('labels of what a search does not find can be read, and waits, whose hatching runs beside the text, better than that', () => {
    const mixed = (a: string, b: string): string =>
      [1, 3, 5].reduce((colour, at) => {
        const [x, y] = [a, b].map((one) => Number.parseInt(one.slice(at, at + 2), 16)) as [number, number];
        return (
          colour +
          Math.round(x * DIMMED + y * (1 - DIMMED))
            .toString(16)
            .padStart(2, '0')
        );
      }, '#');
    for (const family of FAMILIES)
      for (const ground of [back, band])
        expect([family, contrast(text, mixed(LOOKS[family][theme][0], ground)) >= 4.5]).toEqual([family, true]);
    expect(contrast(...LOOKS.wait[theme])).toBeGreaterThan(5.5);
  });

  test('slices have a contrast of 3 to the row that they are in', () => {
    for (const family of FAMILIES)
      for (const ground of [back, band]) expect([family, contrast(LOOKS[family][theme][0], ground) >= 3]).toEqual([family, true]);
  });
});

test('what is in the same row differs in its pattern, too', () => {
  const streams = FAMILIES.filter((family) => !['item', 'stage', 'build', 'collection', 'stall'].includes(family));
  expect(new Set(streams.map((family) => LOOKS[family].pattern)).size).toBe(streams.length);
  expect(LOOKS.item.pattern).not.toBe(LOOKS.stage.pattern);
});
