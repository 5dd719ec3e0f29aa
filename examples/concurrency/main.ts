// Runs the programs of this folder, or the ones that are named, on the devices that there are. See README.md beside this file.
import { parseArgs } from 'node:util';
import { listDevices, openDevice, UnavailableError, type Device, type DeviceSpec } from 'millrace';
import { PROGRAMS, type Program } from './catalog.js';

const HELP = `node main.js [--device NAME]... [PROGRAM]...
  --device NAME  auto, cpu, cuda, cuda:1; twice for programs of two devices. Default: the GPUs, or the CPU devices.
  PROGRAM        ${PROGRAMS.map(({ name }) => name).join(', ')}
`;

async function main(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { device: { type: 'string', multiple: true }, help: { type: 'boolean' } },
  });
  const unknown = positionals.filter((name) => PROGRAMS.every((program) => program.name !== name));
  if (values.help === true || unknown.length > 0) {
    process.stdout.write(unknown.length > 0 ? `There is no program ${unknown.join(', ')}.\n${HELP}` : HELP);
    return unknown.length > 0 ? 1 : 0;
  }
  const opened: Device[] = [];
  try {
    for (const spec of await specs(values.device)) opened.push(await openDevice(spec));
    const wanted = PROGRAMS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
    for (const program of wanted) await perform(program, opened);
    return 0;
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 1;
  } finally {
    await Promise.all(opened.map((device) => device.close()));
  }
}

/** Two devices of one kind, where there are two. */
async function specs(named: readonly string[] | undefined): Promise<readonly DeviceSpec[]> {
  if (named !== undefined) return named.slice(0, 2) as DeviceSpec[];
  const devices = await listDevices();
  const gpus = devices.filter(({ backend }) => backend === 'cuda');
  return (gpus.length > 0 ? gpus : devices.filter(({ backend }) => backend === 'cpu')).slice(0, 2).map(({ id }) => id);
}

async function perform({ name, devices, run }: Program, opened: readonly Device[]): Promise<void> {
  const [first, second] = opened;
  if (first === undefined || (devices === 2 && second === undefined)) {
    console.log(`${name}: skipped, there is one device only (MILLRACE_CPU_DEVICES=2 makes the CPU pretend to be two)`);
    return;
  }
  const result = await run([first, second ?? first]);
  console.log(`${name}: right${describe(result)}`);
}

function describe(result: unknown): string {
  if (typeof result === 'number') return `, ${result.toFixed(3)} ms on the device`;
  if (result instanceof Error) return `, refused with ${result.name}: ${result.message}`;
  if (typeof result !== 'object' || result === null) return '';
  const figures = Object.entries(result).map(([name, value]) => `${name} ${typeof value === 'number' ? value.toFixed(2) : String(value)}`);
  return `, ${figures.join(', ')}`;
}

process.exitCode = await main(process.argv.slice(2));
