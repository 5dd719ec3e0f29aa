#!/usr/bin/env node
// `npx millrace`: one command a file.
import { lstatSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { cac } from 'cac';
import { didYouMean } from '../core/base/nearest-name.js';
import { VERSION } from '../native/addon-place.js';

/** What a shell expects of a call that cannot be understood. */
const MISUSED = 2;
/** As Node ends a process that awaits what nothing is left to settle. */
const UNSETTLED = 13;

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const cli = cac('millrace');

cli
  .command('doctor', 'Look at the system, the addon, drivers, compilers and limits, then run a kernel on every device')
  .option('--json', 'Print an object')
  .action(async (options: { readonly json?: boolean }) => (await import('./doctor.js')).doctor(options.json === true, print));
cli
  .command('devices', 'List the devices that openDevice can open')
  .option('--json', 'Print an array')
  .action(async (options: { readonly json?: boolean }) => (await import('./devices.js')).devices(options.json === true, print));
cli
  .command('build [...modules]', 'Build the kernels of modules ahead of time, for machines without a compiler')
  .option('--out <folder>', 'Where the images go', { default: 'images' })
  .option('--for <targets>', 'Processors and GPUs, such as cpu:x86-64-v3,cpu:aarch64,sm_80,sm_90')
  .example('millrace build src/kernels.ts --out images --for cpu:x86-64-v3,sm_90')
  .action(async (modules: readonly string[]) => {
    const [targets, out = 'images'] = [texts('for'), texts('out').at(-1)];
    if (modules.length === 0)
      return misused('build needs the modules that define the kernels: npx millrace build src/kernels.ts --for cpu:x86-64-v3');
    if (targets.length === 0) return misused('build needs --for with the targets, such as --for cpu:x86-64-v3,sm_90');
    if (out === '') return misused('build needs a folder after --out, such as --out images');
    if (lstatSync(out, { throwIfNoEntry: false })?.isFile()) return misused(`build needs a folder after --out, and ${out} is a file`);
    return (await import('./build.js')).build({ modules, out, targets: targets.join(',') }, print);
  });
cli
  .command('cache [action]', 'Show the cache of built kernels, or clean it: millrace cache clean --older 30d')
  .option('--older <age>', 'Clean only what has not been used for so long: 12h, 30d, 4w')
  .option('--json', 'Print an object')
  .action(async (action: string | undefined, { json }: { readonly json?: boolean }) =>
    (await import('./cache.js')).cache(action, { older: texts('older').at(-1), json: json === true }, print),
  );
cli
  .command('demo', 'Run a pipeline that overlaps copies and kernels, beside the same without overlap')
  .action(async () => (await import('./demo.js')).demo(print));
cli
  .command('top', 'Show what the GPUs of this machine and the programs that serve a live view do; q ends it')
  .option('--once', 'Print once what is now')
  .option('--json', 'Print an object, once')
  .option('--connect <url>', 'A program that serves a live view and that is not found by itself')
  .action(async ({ once, json }: { readonly once?: boolean; readonly json?: boolean }) =>
    (await import('./top.js')).top({ once: once === true, json: json === true, connect: texts('connect') }, print),
  );
cli.command('help [command]', 'Say what a command does and takes').action((name: string | undefined) => {
  const command = name === undefined ? cli.globalCommand : cli.commands.find((one) => one.isMatched(name));
  if (command === undefined) return noCommand(name!);
  command.outputHelp();
  return 0;
});
cli.help();
cli.version(VERSION);

/** The values of an option as they were written, where cac makes numbers of some. */
function texts(name: string): readonly string[] {
  const { values } = parseArgs({ args: process.argv.slice(2), strict: false, options: { [name]: { type: 'string', multiple: true } } });
  return (values[name] ?? []) as readonly string[];
}

function misused(message: string): number {
  process.stderr.write(`${message}\n`);
  return MISUSED;
}

function noCommand(name: string): number {
  const names = cli.commands.map((command) => command.name);
  return misused(`There is no command '${name}'${didYouMean(name, names)}. See npx millrace --help.`);
}

/** An error of the library has its remedies in its message; of any other, the stack is of use. */
function explain(error: unknown): number {
  const { name, message, code } = error as Error & { readonly code?: unknown };
  if (name === 'CACError') {
    const [, option] = /^Unknown option `-+(.+)`$/.exec(message) ?? [];
    const known = [...cli.globalCommand.options, ...(cli.matchedCommand?.options ?? [])].map((one) => `--${one.name}`);
    if (option === undefined) return misused(`${message}. See npx millrace --help.`);
    // cac names `--n` as `-n`.
    const written = process.argv.find((word) => word.startsWith(`--${option}`)) === undefined ? `-${option}` : `--${option}`;
    return misused(`Unknown option \`${written}\`${didYouMean(written, known)}. See npx millrace --help.`);
  }
  if (code === 'ERR_MILLRACE_ARGUMENT') return misused(message);
  const isKnown = typeof code === 'string' && code.startsWith('ERR_MILLRACE_');
  process.stderr.write(`${isKnown ? message : ((error as Error).stack ?? String(error))}\n`);
  return 1;
}

async function run(): Promise<number> {
  try {
    const { options } = cli.parse(process.argv, { run: false });
    // cac prints it without a command.
    if (options['version'] && cli.matchedCommandName !== undefined) cli.outputVersion();
    if (options['help'] || options['version']) return 0;
    if (cli.matchedCommand === undefined) {
      if (cli.args.length > 0) return noCommand(String(cli.args[0]));
      cli.globalCommand.checkUnknownOptions();
      cli.outputHelp();
      return 0;
    }
    return (await (cli.runMatchedCommand() as Promise<number>)) ?? 0;
  } catch (error) {
    return explain(error);
  }
}

// A module that `build` imported may have started something that does not end. Of an `await` here Node would warn, if the module never settles.
process.exitCode = UNSETTLED;
void run().then((code) => process.exit(code));
