// Draws docs/images/concept-*.svg: what the programs of docs/concepts.md did on the CPU device, from a recorded timeline. Needs a build.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { transformSync } from 'esbuild';
import { root } from './tools.mjs';

const FOLDER = join(root, 'build/concept-images');
const DRAWN = { Stream: 'stream', Event: 'event', Lane: 'lane' };
const COLOURS = { launch: 'launch', copy: 'copy', fill: 'fill', wait: 'wait' };
const STYLE = `text{font:13px system-ui,sans-serif;fill:#1f2328}.muted{fill:#59636e}.page{fill:#fff;stroke:#d1d9e0}.row{fill:#f3f5f8}
.launch{fill:#d9e8fb;stroke:#1f6feb}.copy{fill:#d8f0e0;stroke:#2a7d4f}.fill{fill:#fbeccb;stroke:#9a6700}.wait{fill:none;stroke:#59636e;stroke-dasharray:4 3}.arrow{fill:none;stroke:#59636e;stroke-width:1.5}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.muted{fill:#9198a1}.page{fill:#0d1117;stroke:#3d444d}.row{fill:#1b212b}
.launch{fill:#1f4069;stroke:#58a6ff}.copy{fill:#1d4a33;stroke:#4cc38a}.fill{fill:#574217;stroke:#d9a441}.wait{stroke:#9198a1}.arrow{stroke:#9198a1}}`;

/** Runs a program with a recording of its device, and returns the operations. */
async function operationsOf(name, program) {
  const recorded = `import { recordTimeline } from 'millrace/timeline';\n${program}`
    .replace(/^(await device\.compile\(.*)$/m, '$1\nconst recording = recordTimeline(device);')
    .replace(
      'await device.close();',
      'await device.synchronize();\nawait recording.stop();\nexport const operations = recording.operations;\n$&',
    );
  mkdirSync(FOLDER, { recursive: true });
  const file = join(FOLDER, `${name}.mjs`);
  writeFileSync(file, transformSync(recorded, { loader: 'ts', target: 'es2022', format: 'esm' }).code);
  return (await import(pathToFileURL(file).href)).operations;
}

/** A row for each stream, and a bar for each operation; an arrow from an event to the stream that waits for it. */
function draw(operations, title) {
  const shown = operations.filter(({ kind, startMs, endMs }) => kind in COLOURS && endMs - startMs > 0.02);
  const start = Math.min(...shown.map(({ startMs }) => startMs));
  const total = Math.max(...shown.map(({ endMs }) => endMs)) - start;
  const streams = [...new Set(shown.map(({ stream }) => stream))];
  const [left, width, rowHeight] = [96, 740, 44];
  const x = (ms) => (left + ((ms - start) / total) * width).toFixed(1);
  const y = (stream) => 16 + streams.indexOf(stream) * rowHeight;
  const height = 16 + streams.length * rowHeight + 24;
  const parts = [`<rect class="page" x=".5" y=".5" width="859" height="${height - 1}" rx="6"/>`];
  for (const stream of streams) {
    parts.push(`<rect class="row" x="${left}" y="${y(stream)}" width="${width}" height="${rowHeight - 8}"/>`);
    parts.push(`<text x="12" y="${y(stream) + 23}">${stream}</text>`);
  }
  for (const { kind, stream, startMs, endMs, label, direction, after } of shown) {
    const length = Math.max(1.5, ((endMs - startMs) / total) * width);
    const name = label ?? (kind === 'copy' ? { upload: 'up', download: 'down' }[direction] : kind === 'wait' ? 'waits' : undefined) ?? kind;
    parts.push(
      `<rect class="${COLOURS[kind]}" x="${x(startMs)}" y="${y(stream) + 3}" width="${length.toFixed(1)}" height="${rowHeight - 14}" rx="2"/>`,
    );
    if (length > name.length * 8 + 4)
      parts.push(`<text x="${(Number(x(startMs)) + length / 2).toFixed(1)}" y="${y(stream) + 23}" text-anchor="middle">${name}</text>`);
    if (kind === 'wait' && after !== undefined && streams.includes(after.stream)) {
      parts.push(`<path class="arrow" d="M${x(endMs)} ${y(after.stream) + rowHeight - 11}V${y(stream) + 1}m-4 -7l4 7l4 -7"/>`);
    }
  }
  parts.push(
    `<text class="muted" x="${left}" y="${height - 10}">0</text><text class="muted" x="${left + width}" y="${height - 10}" text-anchor="end">${total.toFixed(1)} ms</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 ${height}" width="860" height="${height}" role="img" aria-label="${title}">\n<style>${STYLE}</style>\n${parts.join('\n')}\n</svg>\n`;
}

const sections = readFileSync(join(root, 'docs/concepts.md'), 'utf8').split(/^## /m);
for (const [title, name] of Object.entries(DRAWN)) {
  const program = /^```ts\n(.*?)^```$/ms.exec(sections.find((section) => section.startsWith(`${title}\n`)))[1];
  writeFileSync(join(root, `docs/images/concept-${name}.svg`), draw(await operationsOf(name, program), title));
}
