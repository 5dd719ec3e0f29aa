// `millrace top`: what the GPUs of the machine do, and the programs of this user that serve a live view, again and again.
import { ofReport } from '../core/api/telemetry.js';
import { ArgumentError, type MillraceError } from '../core/base/errors.js';
import { loadBinding } from '../native/load.js';
import type { LiveProgram } from '../recording/live-program.js';
import { servedPrograms } from '../recording/served-programs.js';
import { asUntold } from '../workers/native-errors.js';
import { linesOfTop, type TopFacts, type TopGpu } from './top-lines.js';

/** Milliseconds between two looks. */
const INTERVAL_MS = 1000;
/** A program that does not answer for so long is left out of this look. */
const ANSWER_MS = 800;
const CONTROL_C = '\u0003';
const ALTERNATE_SCREEN = '\u001b[?1049h\u001b[?25l';
const USUAL_SCREEN = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const REST_OF_LINE = '\u001b[K';
const REST_OF_SCREEN = '\u001b[J';

export interface TopOptions {
  readonly json: boolean;
  readonly once: boolean;
  /** Addresses of programs that no file of this user names. */
  readonly connect: readonly string[];
}

/** Shows the facts until q or Ctrl-C. Without a terminal, once. Resolves to 1 if nothing could be told, or an address told nothing. */
export async function top({ json, once, connect }: TopOptions, print: (line: string) => void): Promise<number> {
  const { stdout } = process;
  const addresses = connect.map(addressOf);
  if (json || once || !stdout.isTTY) {
    const facts = await look(addresses);
    if (json) print(JSON.stringify(facts, null, 2));
    else for (const line of linesOfTop(facts, stdout.isTTY ? stdout.columns : Number.POSITIVE_INFINITY)) print(line);
    return (facts.gpus === undefined && facts.programs.length === 0) || facts.unreached.length > 0 ? 1 : 0;
  }
  await watch(addresses);
  return 0;
}

/** The facts of now. */
async function look(addresses: readonly string[]): Promise<TopFacts> {
  const urls = new Set([...addresses, ...servedPrograms().map(({ url }) => url)]);
  const answers = await Promise.all([...urls].map(async (url) => [url, await answerOf(url)] as const));
  const programs = answers.flatMap(([, answer]) => (typeof answer === 'string' ? [] : [answer]));
  // A program that was found by itself may have just ended.
  const unreached = answers.flatMap(([url, why]) => (typeof why === 'string' && addresses.includes(url) ? [{ url, why }] : []));
  return { at: new Date().toISOString(), ...gpus(), programs, unreached };
}

/** Throws ArgumentError for what is no address of a live view. */
function addressOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' && url.pathname.length > 1) return url.pathname.endsWith('/') ? url.href : `${url.href}/`;
  const message = `--connect ${text} is no address of a live view, such as http://127.0.0.1:9000/token/: the url of what serveTimeline returned.`;
  throw new ArgumentError('ERR_MILLRACE_ARGUMENT', message, { argument: 'connect', value: text });
}

/** What the program tells, or why it tells nothing. */
async function answerOf(url: string): Promise<LiveProgram | string> {
  try {
    const answer = await fetch(`${url}snapshot`, { signal: AbortSignal.timeout(ANSWER_MS) });
    if (answer.ok) return (await answer.json()) as LiveProgram;
    return answer.status === 403 ? 'it refuses the token in the address' : `it answers with status ${answer.status}`;
  } catch (error) {
    const { name, message, cause } = error as Error;
    if (name === 'TimeoutError') return `there was no answer within ${ANSWER_MS} ms`;
    return cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code || message : message;
  }
}

function gpus(): Pick<TopFacts, 'gpus' | 'reason'> {
  try {
    const found = loadBinding().allTelemetry();
    return { gpus: found.map((report, index): TopGpu => ({ index, name: report.name, ...ofReport(report) })) };
  } catch (error) {
    return { reason: (asUntold(error) as MillraceError).message };
  }
}

/** Draws until the user ends it. */
async function watch(addresses: readonly string[]): Promise<void> {
  const { stdin, stdout } = process;
  let facts = await look(addresses);
  const draw = (): void => {
    const lines = linesOfTop(facts, stdout.columns).slice(0, Math.max(stdout.rows - 1, 1));
    stdout.write(HOME + lines.map((line) => `${line}${REST_OF_LINE}\n`).join('') + REST_OF_SCREEN);
  };
  stdout.write(ALTERNATE_SCREEN);
  stdout.on('resize', draw);
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve) => {
      const step = async (): Promise<void> => {
        facts = await look(addresses);
        // A terminal that is stopped, or slower than this, gets the newest facts later, and not all of them.
        if (stdout.writableLength === 0) draw();
        timer = setTimeout(() => void step(), INTERVAL_MS);
      };
      draw();
      timer = setTimeout(() => void step(), INTERVAL_MS);
      if (stdin.isTTY) stdin.setRawMode(true);
      stdin.on('data', (keys: Buffer) => {
        if (/q/i.test(keys.toString()) || keys.includes(CONTROL_C)) resolve();
      });
      // Without a terminal at its input, it ends by signals only.
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
    });
  } finally {
    clearTimeout(timer);
    stdout.off('resize', draw);
    if (stdin.isTTY) stdin.setRawMode(false);
    stdin.pause();
    stdout.write(USUAL_SCREEN);
  }
}
