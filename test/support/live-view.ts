// Asks the server of a live view, as a page does.
import { type IncomingMessage, request } from 'node:http';
import type { TimelineServer } from 'millrace/timeline';

interface LiveRow {
  readonly device: string;
  readonly stream: string;
  readonly slices: readonly (readonly [kind: string, label: string, startMs: number, endMs: number, count: number])[];
}
/** What a page of the live view gets. */
export interface LiveMessage {
  readonly pid: number;
  readonly nowMs: number;
  readonly seconds?: number;
  readonly hasMissed?: boolean;
  readonly devices: readonly {
    readonly device: string;
    readonly state: string;
    readonly error?: string;
    readonly operationsPerSecond: number;
    readonly streams: readonly {
      readonly stream: string;
      readonly pending: number;
      readonly current?: string;
      readonly waiting?: string;
    }[];
  }[];
  readonly rows: readonly LiveRow[];
}

interface Asked {
  readonly host?: string;
  readonly method?: string;
}

/** The answer, without its body. */
export function ask(url: string, { host, method = 'GET' }: Asked = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { agent: false, method, headers: host === undefined ? {} : { host } }, resolve);
    asked.on('error', reject).end();
  });
}

export async function textOf(answer: IncomingMessage): Promise<string> {
  const parts = await answer.toArray();
  return Buffer.concat(parts as Buffer[]).toString();
}

/** The messages of a page that is open, until the caller leaves the loop. */
export async function* messagesOf(server: TimelineServer): AsyncGenerator<LiveMessage & { readonly type?: string }> {
  const answer = await ask(`${server.url}events`);
  let text = '';
  try {
    for await (const part of answer) {
      text += (part as Buffer).toString();
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const lines = text.slice(0, end).split('\n');
        text = text.slice(end + 2);
        const type = lines.find((line) => line.startsWith('event: '))?.slice(7);
        yield {
          ...(JSON.parse(lines.find((line) => line.startsWith('data: '))!.slice(6)) as LiveMessage),
          ...(type !== undefined && { type }),
        };
      }
    }
  } finally {
    answer.destroy();
  }
}
