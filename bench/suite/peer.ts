// A program beside the benchmark that does the same without Millrace. It answers one request a line, so that both sides measure in turn in
// one run. bench/native/driver_peer.cpp and bench/peers/conversation.py describe the lines.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** Of a program that does not answer: longer than any request or import takes. */
const ANSWER_MS = 60_000;

interface Answer {
  readonly version?: string;
  readonly seconds?: readonly number[];
  readonly error?: string;
}

export class Peer {
  readonly name: string;
  readonly version: string;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  #isLost = false;

  private constructor(name: string, version: string, child: ChildProcessWithoutNullStreams, lines: AsyncIterator<string>) {
    this.name = name;
    this.version = version;
    this.#child = child;
    this.#lines = lines;
  }

  /** Returns the reason if the program does not start. */
  static async start(name: string, program: string, args: readonly string[]): Promise<Peer | string> {
    const child = spawn(program, [...args], { stdio: 'pipe' });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-2000)));
    // Writing to a program that has ended is reported by its answer.
    child.stdin.on('error', () => undefined);
    const failed = new Promise<string>((resolve) => child.on('error', (error) => resolve(error.message)));
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const first = await Promise.race([nextAnswer(lines), failed]);
    if (typeof first !== 'string' && first.version !== undefined) return new Peer(name, first.version, child, lines);
    child.kill('SIGKILL');
    const reason = typeof first === 'string' ? first : first.error!;
    return stderr.trim().split('\n').at(-1) || reason;
  }

  /** Seconds, or the reason why there are none. */
  async ask(request: string): Promise<readonly number[] | string> {
    if (this.#isLost) return 'its program ended';
    this.#child.stdin.write(`${request}\n`);
    const { seconds, error } = await nextAnswer(this.#lines);
    if (seconds !== undefined) return seconds;
    this.#isLost = this.#child.exitCode !== null || error === ENDED;
    return error ?? 'its answer has no seconds';
  }

  close(): void {
    this.#child.stdin.end();
    // A program that hangs would keep this one alive.
    setTimeout(() => this.#child.kill('SIGKILL'), 2000).unref();
    this.#child.unref();
  }
}

const ENDED = 'its program ended';

async function nextAnswer(lines: AsyncIterator<string>): Promise<Answer> {
  const late = new AbortController();
  const timeout = new Promise<Answer>((resolve) => {
    const timer = setTimeout(() => resolve({ error: ENDED }), ANSWER_MS);
    late.signal.addEventListener('abort', () => clearTimeout(timer));
  });
  const answer = lines.next().then(({ value, done }): Answer => {
    if (done === true) return { error: ENDED };
    try {
      return JSON.parse(value) as Answer;
    } catch {
      return { error: `its answer is no JSON: ${value.slice(0, 200)}` };
    }
  });
  try {
    return await Promise.race([answer, timeout]);
  } finally {
    late.abort();
  }
}
