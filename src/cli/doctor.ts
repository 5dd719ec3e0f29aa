// `millrace doctor`: the findings of `diagnostics()`, then a kernel on every device.
import { styleText } from 'node:util';
import {
  diagnostics,
  f32,
  input,
  inout,
  kernel,
  listDevices,
  openDevice,
  type Device,
  type DeviceName,
  type Finding,
  type Kernel,
  type MillraceError,
} from '../index.js';

const COUNT = 1 << 20;
const FACTOR = 3;
const COLOURS = { ok: 'green', warning: 'yellow', error: 'red' } as const;
const AHEAD = 'Or build kernels ahead of time on another machine: npx millrace build <modules> --out <folder> --for <targets>';
/** No compiler, none that works here, or none beside images that lack a kernel. */
const LACKS_COMPILER = /^K70[178]: /;
const TRIAL = 'try ';
const WORD = 8;
const LABEL = 22;
const WIDTH = 80;

/** Prints a line for each finding. Resolves to 1 if one of them is an error. */
export async function doctor(isJson: boolean, print: (line: string) => void): Promise<number> {
  const { findings } = await diagnostics().catch((error: MillraceError & { readonly help?: readonly string[] }) => {
    const remedy = (error.help ?? []).join('\n');
    return {
      findings: [
        { name: 'diagnostics', status: 'error', value: error.message.split('\n', 1)[0]!, ...(remedy !== '' && { remedy }) } as const,
      ],
    };
  });
  if (!isJson) for (const finding of findings) show(finding, print);
  const trials: Finding[] = [];
  // Else no device opens, for a reason that is told.
  if (!findings.some(({ status }) => status === 'error')) {
    for (const { id, backend } of await listDevices()) {
      const compiler = findings.find(({ name }) => name === (backend === 'cpu' ? 'C++ compiler' : 'CUDA compiler'));
      const trial = await tryDevice(id, compiler);
      trials.push(trial);
      if (!isJson) show(trial, print);
    }
  }
  const all = [...findings, ...trials];
  if (isJson) print(JSON.stringify({ findings: all }, null, 2));
  else print(summary(all));
  return all.some(({ status }) => status === 'error') ? 1 : 0;
}

/** Compiles, launches, copies and awaits, and compares every element. Without a compiler, only copies. `compiler`: what was found of it. */
async function tryDevice(id: DeviceName, compiler: Finding | undefined): Promise<Finding> {
  const name = `${TRIAL}${id}`;
  const hasImages = compiler?.value.includes('MILLRACE_IMAGES') === true;
  // A new kernel each time: the cache would hide a compiler that does not work.
  const options = { constants: { nth: Date.now() % 2 ** 31 } };
  const scaled = kernel(
    'doctor',
    { x: input(f32), y: inout(f32), factor: f32 },
    ({ x, y, factor }, { i, nth }) => {
      // The last part is 0: the factor is 3.
      y[i] = factor * x[i]! + y[i]! + (factor - 3) * nth;
    },
    options,
  );
  const start = performance.now();
  try {
    await using device = await openDevice(id);
    const opened = performance.now();
    const missing = await device.compile(scaled).then(
      () => undefined,
      (error: MillraceError) => error,
    );
    if (missing !== undefined && !LACKS_COMPILER.test(missing.message)) throw missing;
    const compiled = performance.now();
    const wrong = await wrongElement(device, missing === undefined ? scaled : undefined);
    const done = performance.now();
    if (wrong !== undefined) return { name, status: 'error', value: wrong, remedy: 'Report it, with this output.' };
    const [open, compile, run] = [opened - start, compiled - opened, done - compiled].map((ms) => `${ms.toFixed(1)} ms`);
    const peers = (await peersOf(device)).map((peer) => `, reaches ${peer}`).join('');
    if (missing === undefined) {
      return { name, status: 'ok', value: `open ${open}, compile ${compile}, copy, launch and read ${run}${peers}` };
    }
    const [reason = '', ...help] = linesOf(missing);
    const isMissing = compiler?.status === 'warning' && !reason.startsWith('K707');
    const remedy = [...(isMissing ? [`Do what the warning about the ${compiler.name} says.`] : help), AHEAD].join('\n');
    const why = reason.startsWith('K707') ? reason.replace(LACKS_COMPILER, '') : 'no kernel was launched, because no compiler builds it';
    const value = `open ${open}, copy and read ${run}${peers}; ${why}`;
    return hasImages ? { name, status: 'ok', value } : { name, status: 'warning', value, remedy };
  } catch (error) {
    const [value = '', ...help] = linesOf(error as Error);
    return { name, status: 'error', value, ...(help.length > 0 && { remedy: help.join('\n') }) };
  }
}

/** Of an error's message: what happened, then the remedies. */
function linesOf({ message }: Error): readonly string[] {
  return message.split('\n').map((line) => line.trim());
}

async function wrongElement(device: Device, scaled: Kernel | undefined): Promise<string | undefined> {
  const values = Float32Array.from({ length: COUNT }, (_, at) => at % 1000);
  using x = device.from(values);
  using y = device.from(values);
  const factor = scaled === undefined ? 0 : FACTOR;
  if (scaled !== undefined) device.stream.launch(scaled, COUNT, { x, y, factor });
  const result = await y.read();
  const at = result.findIndex((value, index) => value !== (factor + 1) * values[index]!);
  return at < 0 ? undefined : `element ${at} of ${COUNT} is ${result[at]}, not ${(factor + 1) * values[at]!}`;
}

/** The other GPUs whose memory this one reaches directly. */
async function peersOf(device: Device): Promise<readonly string[]> {
  if (device.info.backend !== 'cuda') return [];
  const others = (await listDevices()).filter(({ id, backend }) => backend === 'cuda' && id !== device.info.id);
  const found: string[] = [];
  for (const { id } of others) {
    await using other = await openDevice(id);
    if (await device.peers.canGrant(other)) found.push(id);
  }
  return found;
}

function show({ name, status, value, remedy }: Finding, print: (line: string) => void): void {
  const isColoured = process.stdout.isTTY;
  const word = status.padEnd(WORD);
  const head = `${isColoured ? styleText(COLOURS[status], word) : word}${name.padEnd(LABEL)} `;
  const indent = ' '.repeat(WORD + LABEL + 1);
  for (const [at, line] of wrapped(value, WIDTH - indent.length).entries()) print(`${at === 0 ? head : indent}${line}`);
  for (const way of remedy?.split('\n') ?? [])
    for (const [at, line] of wrapped(way, WIDTH - indent.length - 2).entries()) print(`${indent}${at === 0 ? '>' : ' '} ${line}`);
}

/** Lines of at most `width` characters where words permit. */
function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

function summary(findings: readonly Finding[]): string {
  const count = (wanted: Finding['status']): number => findings.filter(({ status }) => status === wanted).length;
  const counted = (wanted: 'error' | 'warning'): string => `${count(wanted)} ${wanted}${count(wanted) === 1 ? '' : 's'}`;
  if (count('error') > 0) return `${counted('error')}, ${counted('warning')}: Millrace does not work here as it should.`;
  const working = findings
    .filter(({ name, status }) => name.startsWith(TRIAL) && status === 'ok')
    .map(({ name }) => name.slice(TRIAL.length));
  const works =
    working.length === 0 ? 'no device builds kernels here.' : `${working.join(', ')} ${working.length === 1 ? 'works' : 'work'}.`;
  return count('warning') > 0 ? `No errors, ${counted('warning')}: ${works}` : `Everything is in order: ${works}`;
}
