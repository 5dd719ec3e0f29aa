// Bar charts of a group of rows as SVG, in the colours of a light or a dark page. One panel for each unit, because sides are compared by
// the length of their bars.
import { number } from '../suite/console-table.js';
import { figureOf, isAbsent, type Report } from '../suite/report.js';
import type { Row, RowGroup } from '../suite/rows.js';

const WIDTH = 860;
const LABEL = 330;
/** A line of a label ends at least two letters before the bars. */
const LABEL_LETTERS = 44;
const FIGURE = 110;
const BAR = 15;
const GAP = 14;
const LIGHT = ['#1f6feb', '#8a8f98', '#d9822b', '#7d56c2', '#2a9d6f', '#b5475d', '#5f7a8a', '#a68a00', '#4b4f56'];
const DARK = ['#58a6ff', '#9aa0a8', '#f0a04b', '#b392f0', '#4cc38a', '#f07d91', '#8fb0c4', '#d9c24a', '#c9ced6'];

interface Bar {
  readonly side: string;
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** Across machines: the median of the medians with their ends; of one machine, its percentiles 10 and 90. */
function barsOf(row: Row, reports: readonly Report[]): Bar[] {
  const results = reports.flatMap((report) => report.results.filter(({ id }) => id === row.id));
  const sides = ['Millrace', ...new Set(results.flatMap(({ peers }) => Object.keys(peers)))];
  return sides.flatMap((side) => {
    const figures = results.flatMap((result) => {
      const one = side === 'Millrace' ? result.ours : result.peers[side];
      return one === undefined || isAbsent(one) ? [] : [one];
    });
    const [first] = figures;
    if (first === undefined) return [];
    if (figures.length === 1) return [{ side, value: first.p50, low: first.p10, high: first.p90 }];
    const all = figureOf(figures.map(({ p50 }) => p50));
    return [{ side, value: all.p50, low: all.min, high: all.max }];
  });
}

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('`', '');

/** Breaks before the limit. */
function wrapped(text: string, limit: number): string[] {
  const lines: string[] = [''];
  for (const word of text.split(' ')) {
    const last = lines.at(-1)!;
    if (last !== '' && last.length + word.length + 1 > limit) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines;
}

/** Undefined if no row of the group has a peer beside it. */
export function groupChart(group: RowGroup, reports: readonly Report[]): string | undefined {
  const rows = group.rows.flatMap((row) => {
    const bars = barsOf(row, reports);
    return bars.length < 2 ? [] : [{ row, bars }];
  });
  if (rows.length === 0) return undefined;
  const sides = [...new Set(rows.flatMap(({ bars }) => bars.map(({ side }) => side)))];
  const parts: string[] = [];
  let y = 16;
  const text = (x: number, at: number, content: string, extra = ''): void =>
    void parts.push(`<text x="${x}" y="${at}"${extra}>${escape(content)}</text>`);
  text(16, y + 12, group.title, ' class="title"');
  let x = 16;
  y += 34;
  for (const [at, side] of sides.entries()) {
    const width = 30 + side.length * 7;
    if (x + width > WIDTH - 16) [x, y] = [16, y + 20];
    parts.push(`<rect class="s${at}" x="${x}" y="${y - 10}" width="12" height="12" rx="2"/>`);
    text(x + 17, y, side);
    x += width;
  }
  y += 22;
  for (const unit of new Set(rows.map(({ row }) => row.unit))) {
    const panel = rows.filter(({ row }) => row.unit === unit);
    const most = Math.max(...panel.flatMap(({ bars }) => bars.map(({ value }) => value)));
    const scale = (value: number): number => (Math.min(Math.max(value, 0), most) / most) * (WIDTH - LABEL - FIGURE - 16);
    text(LABEL, y, `${unit}, ${panel[0]!.row.isRate ? 'more' : 'less'} is better`, ' class="unit"');
    y += 10;
    for (const { row, bars } of panel) {
      const lines = wrapped(row.what, LABEL_LETTERS);
      for (const [at, line] of lines.entries()) text(16, y + 12 + at * 15, line);
      for (const [at, { side, value, low, high }] of bars.entries()) {
        const top = y + at * BAR;
        const end = LABEL + scale(value);
        parts.push(
          `<rect class="s${sides.indexOf(side)}" x="${LABEL}" y="${top + 2}" width="${(end - LABEL).toFixed(1)}" height="${BAR - 4}" rx="1"/>`,
        );
        const middle = top + BAR / 2;
        parts.push(`<path class="spread" d="M${(LABEL + scale(low)).toFixed(1)} ${middle}H${(LABEL + scale(high)).toFixed(1)}"/>`);
        text(Math.max(end, LABEL + scale(high)) + 6, top + 12, number(value), ' class="figure"');
      }
      y += Math.max(bars.length * BAR, lines.length * 15) + GAP;
    }
    y += 8;
  }
  const colours = (list: readonly string[]): string => list.map((colour, at) => `.s${at}{fill:${colour}}`).join('');
  const style = [
    'text{font:12.5px system-ui,sans-serif;fill:#1f2328}.title{font-size:15px;font-weight:600}.unit,.figure{fill:#59636e}',
    '.page{fill:#ffffff;stroke:#d1d9e0}.spread{stroke:#1f2328;stroke-width:1.3;opacity:.65}',
    colours(LIGHT),
    `@media(prefers-color-scheme:dark){text{fill:#e6edf3}.unit,.figure{fill:#9198a1}.page{fill:#0d1117;stroke:#3d444d}.spread{stroke:#e6edf3}${colours(DARK)}}`,
  ].join('');
  const height = y + 4;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escape(group.title)}">
<style>${style}</style>
<rect class="page" x=".5" y=".5" width="${WIDTH - 1}" height="${height - 1}" rx="6"/>
${parts.join('\n')}
</svg>
`;
}
