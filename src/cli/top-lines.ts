// The text of `millrace top`.
import { styleText } from 'node:util';
import type { GpuTelemetry } from '../core/api/telemetry.js';
import type { LiveDevice, LiveProgram, LiveStream } from '../recording/live-program.js';

export interface TopGpu extends GpuTelemetry {
  /** NVML's number. CUDA may count otherwise. */
  readonly index: number;
  readonly name: string;
}

/** What `--json` prints. */
export interface TopFacts {
  /** When, as ISO 8601 has it. */
  readonly at: string;
  /** All GPUs of the machine; undefined if NVML tells nothing. */
  readonly gpus?: readonly TopGpu[];
  /** Why there are none. */
  readonly reason?: string;
  /** Programs that serve a live view (`serveTimeline`). */
  readonly programs: readonly LiveProgram[];
  /** Addresses of `--connect` that told nothing, and why. */
  readonly unreached: readonly { readonly url: string; readonly why: string }[];
}

interface Column<Row> {
  readonly title: string;
  readonly of: (row: Row) => string;
  /** Numbers end at the right. */
  readonly isNumber?: boolean;
}

const NONE = '-';
const GAP = '  ';
const GIB = 2 ** 30;
const TEXT_COLUMNS = 80;

const round = (value: number | undefined, unit: string, digits = 0): string =>
  value === undefined ? NONE : `${value.toFixed(digits)} ${unit}`;
const listed = (words: readonly (string | number)[]): string => words.join(' ') || NONE;

const GPU_COLUMNS: readonly Column<TopGpu>[] = [
  { title: 'GPU', of: ({ index }) => String(index) },
  { title: 'LOAD', of: ({ busyPercent }) => round(busyPercent, '%'), isNumber: true },
  { title: 'MEMORY', of: memoryOf, isNumber: true },
  { title: 'TEMP', of: ({ temperatureC }) => round(temperatureC, 'C'), isNumber: true },
  { title: 'POWER', of: powerOf, isNumber: true },
  { title: 'SM CLOCK', of: ({ smClockMHz }) => round(smClockMHz, 'MHz'), isNumber: true },
  { title: 'XID', of: ({ xidErrors }) => listed(xidErrors.map(({ code }) => code)) },
  { title: 'NAME', of: ({ name }) => name },
  // An idle GPU has low clocks for no reason that is worth a word.
  { title: 'SLOWED BY', of: ({ throttleReasons }) => listed(throttleReasons.filter((reason) => reason !== 'gpu-idle')) },
];

const STREAM_COLUMNS: readonly Column<LiveStream>[] = [
  { title: 'STREAM', of: ({ stream }) => stream },
  { title: 'PENDING', of: ({ pending }) => String(pending), isNumber: true },
  { title: 'NOW', of: ({ current }) => current ?? NONE },
  { title: 'WAITS FOR', of: ({ waiting, current }) => (waiting === undefined || current === undefined ? NONE : waiting) },
];

function memoryOf({ memoryUsedBytes, memoryTotalBytes }: TopGpu): string {
  return memoryUsedBytes === undefined || memoryTotalBytes === undefined
    ? NONE
    : `${(memoryUsedBytes / GIB).toFixed(1)} / ${(memoryTotalBytes / GIB).toFixed(1)} GiB`;
}

function powerOf({ powerW, powerLimitW }: TopGpu): string {
  if (powerW === undefined) return NONE;
  return powerLimitW === undefined ? `${powerW.toFixed(0)} W` : `${powerW.toFixed(0)} / ${powerLimitW.toFixed(0)} W`;
}

/** No line is wider than the terminal. Colours only where it has them. */
export function linesOfTop({ at, gpus, reason, programs, unreached }: TopFacts, columns: number): string[] {
  const time = new Date(at).toLocaleTimeString('en-GB');
  const found = [gpus === undefined ? 'no GPU is monitored' : counted(gpus.length, 'GPU'), counted(programs.length, 'program')];
  const lines = [`millrace top  ${time}  ${found.join(', ')}`, ''];
  if (gpus === undefined)
    lines.push(...(reason ?? '').split('\n').flatMap((line) => wrapped(line.trim(), Math.min(columns, TEXT_COLUMNS))));
  else if (gpus.length > 0) lines.push(...table(GPU_COLUMNS, gpus));
  const wide = (text: string): readonly string[] => wrapped(text, Math.min(columns, TEXT_COLUMNS));
  for (const { url, why } of unreached) lines.push('', ...wide(`${url} tells nothing: ${why}.`));
  if (gpus === undefined && programs.length === 0 && unreached.length === 0)
    lines.push('', ...wide('No program of this user serves a live view: serveTimeline of millrace/timeline does.'));
  for (const { pid, title, devices } of programs) lines.push('', `${title}, process ${pid}`, ...devices.flatMap(linesOfDevice));
  return lines.map((line) => cut(line, columns)).map((line, n) => (n === 0 || isTitle(line) ? styled('bold', line) : line));
}

const isTitle = (line: string): boolean => /^\s*(?:GPU|STREAM) {2}/.test(line);

function linesOfDevice({ device, state, error, operationsPerSecond, pending, streams }: LiveDevice): string[] {
  const head = `  ${device} ${state}, ${counted(Math.round(operationsPerSecond), 'operation')}/s, ${pending} pending`;
  const busy = streams.filter((stream) => stream.pending > 0);
  return [
    head,
    ...(error === undefined ? [] : [`    ${error}`]),
    ...(busy.length === 0 ? [] : table(STREAM_COLUMNS, busy).map((line) => `    ${line}`)),
  ];
}

/** As `styleText` decides: NO_COLOR, and whether the output is a terminal. */
function styled(style: 'bold', text: string): string {
  const { stdout, env } = process;
  return stdout.isTTY && !env['NO_COLOR'] && env['TERM'] !== 'dumb' ? styleText(style, text) : text;
}

function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
  const cells = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ of }) => of(row)))];
  const widths = columns.map((_, n) => Math.max(...cells.map((line) => line[n]!.length)));
  return cells.map((line) =>
    line
      .map((cell, n) => (columns[n]!.isNumber ? cell.padStart(widths[n]!) : cell.padEnd(widths[n]!)))
      .join(GAP)
      .trimEnd(),
  );
}

/** What a name of a device or a label of a program says to a terminal is not done. */
export function cut(line: string, columns: number): string {
  // oxlint-disable-next-line no-control-regex -- that is what is looked for.
  const plain = line.replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
  return plain.length <= columns ? plain : `${plain.slice(0, Math.max(columns - 1, 0))}…`;
}

function wrapped(text: string, columns: number): string[] {
  const lines: string[] = [''];
  for (const word of text.split(' ')) {
    const last = lines.at(-1)!;
    if (last !== '' && last.length + 1 + word.length > columns) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
