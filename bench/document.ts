// Writes the tables and charts of docs/benchmarks.md from the reports of bench/main.ts. Reports of several machines with the same backend are
// put together; `docs/benchmarks/reasons.json` has the reasons of missed goals.
//
//   node build/js/bench/document.js docs/benchmarks/*.json
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { groupChart } from './document/chart.js';
import { groupTable, type Reasons } from './document/table.js';
import type { Report } from './suite/report.js';
import { GROUPS } from './suite/rows.js';

const BEGIN = '<!-- Written by bench/document.ts: from here -->';
const END = '<!-- Written by bench/document.ts: to here -->';
const TITLES = { cuda: 'On GPUs', cpu: 'On the CPU device' } as const;

const docs = fileURLToPath(new URL('../../../docs/', import.meta.url));
const page = `${docs}benchmarks.md`;
const folder = `${docs}benchmarks/`;
mkdirSync(folder, { recursive: true });
const files = process.argv.slice(2).filter((file) => basename(file) !== 'reasons.json');
if (files.length === 0) throw new Error('Name the reports: node build/js/bench/document.js docs/benchmarks/*.json');
const reports = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as Report);
const reasons = JSON.parse(readFileSync(`${folder}reasons.json`, 'utf8')) as Reasons;

function* sections(): Generator<string> {
  for (const backend of ['cuda', 'cpu'] as const) {
    const own = reports.filter(({ device }) => device.backend === backend);
    if (own.length === 0) continue;
    yield `## ${TITLES[backend]}`;
    for (const { machine, versions, command, seconds, at } of own) {
      const peers = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
      yield `${at.slice(0, 10)}: ${[machine, ...peers].join('; ')}. \`${command}\`, ${seconds} s.`;
    }
    for (const group of GROUPS) {
      const table = groupTable(group, backend, own, reasons);
      if (table === undefined) continue;
      yield `### ${group.title}${backend === 'cuda' || group.title.includes('CPU') ? '' : ', CPU device'}`;
      const chart = groupChart(group, own);
      if (chart !== undefined) {
        const name = `${backend}-${group.name}.svg`;
        writeFileSync(`${folder}${name}`, chart);
        yield `![${group.title}: the figures of the table as bars](benchmarks/${name})`;
      }
      yield table;
    }
  }
}

const text = readFileSync(page, 'utf8');
const [before, after] = [text.indexOf(BEGIN), text.indexOf(END)];
if (before < 0 || after < before) throw new Error(`${page} has no place for the tables.`);
writeFileSync(page, `${text.slice(0, before + BEGIN.length)}\n\n${[...sections()].join('\n\n')}\n\n${text.slice(after)}`);
console.log(`Written: ${page}`);
