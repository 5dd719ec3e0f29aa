// The two pictures, as SVG: the loss of every step, and which digit was taken for which.
import { CLASSES } from './shape.js';

const INK = '#1f2933';
const FONT = 'font-family="sans-serif" font-size="13"';

/** The losses of all steps on a logarithmic scale: each one as a dot, and their running mean as a line. */
export function lossCurve(losses: readonly number[], stepsOfEpoch: number): string {
  const [width, height, left, top] = [760, 400, 60, 50];
  const [most, least] = [Math.max(...losses), Math.min(...losses)].map(Math.log10) as [number, number];
  const [low, high] = [Math.floor(2 * least) / 2, Math.ceil(2 * most) / 2];
  const x = (step: number): number => left + ((width - left - 20) * step) / Math.max(1, losses.length - 1);
  const y = (loss: number): number => top + ((height - top - 50) * (high - Math.log10(loss))) / (high - low);
  const parts: string[] = [];
  for (let tick = low; tick <= high; tick += 0.5) {
    const at = y(10 ** tick).toFixed(1);
    parts.push(`<line x1="${left}" x2="${width - 20}" y1="${at}" y2="${at}" stroke="#d5dbe1"/>`);
    parts.push(`<text x="${left - 8}" y="${Number(at) + 4}" text-anchor="end">${Number((10 ** tick).toPrecision(2))}</text>`);
  }
  const epochs = losses.length / stepsOfEpoch;
  for (let epoch = 0; epoch <= epochs; epoch += Math.ceil(epochs / 12)) {
    parts.push(`<text x="${x(epoch * stepsOfEpoch).toFixed(1)}" y="${height - 28}" text-anchor="middle">${epoch}</text>`);
  }
  const dots = losses.map((loss, step) => `M${x(step).toFixed(1)} ${y(loss).toFixed(1)}h0`).join('');
  parts.push(`<path d="${dots}" stroke="#9db4d0" stroke-width="3" stroke-linecap="round"/>`);
  let running = losses[0]!;
  const line = losses.map((loss, step) => {
    running += (loss - running) * Math.max(1 / (step + 1), 1 / 16);
    return `${step === 0 ? 'M' : 'L'}${x(step).toFixed(1)} ${y(running).toFixed(1)}`;
  });
  parts.push(`<path d="${line.join('')}" fill="none" stroke="#1d5fae" stroke-width="2"/>`);
  parts.push(`<text x="${(left + width) / 2}" y="${height - 8}" text-anchor="middle">epoch</text>`);
  parts.push(`<text x="${left - 40}" y="28" font-size="16">Cross entropy of each step, and its running mean</text>`);
  return svg(width, height, parts);
}

/** Rows are the digits, columns the answers; the shade of a cell off the diagonal is that of its part of all mistakes. */
export function confusionMatrix(counts: ArrayLike<number>): string {
  const [cell, left, top] = [44, 70, 96];
  const all = Array.from(counts);
  const right = all.reduce((sum, count, at) => sum + (at % (CLASSES + 1) === 0 ? count : 0), 0);
  const total = all.reduce((sum, count) => sum + count, 0);
  const most = Math.max(1, ...all.filter((_, at) => at % (CLASSES + 1) !== 0));
  const parts = [
    `<text x="20" y="28" font-size="16">${right} of ${total} digits are read rightly (${((100 * right) / total).toFixed(2)} %)</text>`,
    `<text x="${left + (CLASSES * cell) / 2}" y="62" text-anchor="middle">answer</text>`,
    `<text transform="translate(24 ${top + (CLASSES * cell) / 2}) rotate(-90)" text-anchor="middle">digit</text>`,
  ];
  for (let digit = 0; digit < CLASSES; digit++) {
    parts.push(`<text x="${left + (digit + 0.5) * cell}" y="${top - 10}" text-anchor="middle">${digit}</text>`);
    parts.push(`<text x="${left - 12}" y="${top + (digit + 0.5) * cell + 5}" text-anchor="end">${digit}</text>`);
    for (let answer = 0; answer < CLASSES; answer++) {
      const count = all[digit * CLASSES + answer]!;
      const [x, y] = [left + answer * cell, top + digit * cell];
      const shade = 0.15 + (0.75 * count) / most;
      const fill = digit === answer ? '#cfe3cf' : count === 0 ? '#ffffff' : `rgb(200,60,40,${shade.toFixed(2)})`;
      const ink = digit !== answer && shade > 0.6 ? '#ffffff' : INK;
      parts.push(`<rect x="${x}" y="${y}" width="${cell}" height="${cell}" fill="${fill}" stroke="#d5dbe1"/>`);
      if (count > 0) parts.push(`<text x="${x + cell / 2}" y="${y + cell / 2 + 5}" text-anchor="middle" fill="${ink}">${count}</text>`);
    }
  }
  return svg(left + CLASSES * cell + 20, top + CLASSES * cell + 20, parts);
}

function svg(width: number, height: number, parts: readonly string[]): string {
  const open = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ${FONT} fill="${INK}">`;
  return [open, `<rect width="${width}" height="${height}" fill="#ffffff"/>`, ...parts, '</svg>', ''].join('\n');
}
