// A thread of load.ts: sends requests at random moments.
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';

/** A request without an answer counts as an error after these milliseconds. */
const PATIENCE_MS = 10_000;

export interface Sent {
  readonly path: string;
  readonly type: string;
  readonly body: Uint8Array;
}

export interface Order extends Sent {
  readonly url: string;
  readonly seconds: number;
  /** Requests a second. */
  readonly rate: number;
  /** Connections. A request whose moment comes while all of them wait for answers is not sent. */
  readonly connections: number;
}

export interface Answers {
  /** Milliseconds from each request's moment to its answer, without those that were refused. */
  readonly times: Float64Array;
  readonly refused: number;
  readonly unsent: number;
  readonly otherErrors: number;
}

/** The moments are those of many independent clients, and a late sender makes an answer later. */
export async function send({ url, path, type, body, seconds, rate, connections }: Order): Promise<Answers> {
  const agent = new Agent({ keepAlive: true, scheduling: 'lifo' });
  const headers = { 'content-type': type, 'content-length': body.length };
  const times: number[] = [];
  let [refused, unsent, otherErrors] = [0, 0, 0];
  const one = async (moment: number): Promise<void> => {
    const sent = request(url + path, { method: 'POST', agent, headers, signal: AbortSignal.timeout(PATIENCE_MS) });
    sent.end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    await once(answer.resume(), 'end');
    if (answer.statusCode === 200) times.push(performance.now() - moment);
    else if (answer.statusCode === 503) refused++;
    else otherErrors++;
  };
  const under = new Set<Promise<void>>();
  const start = performance.now();
  for (let moment = start; moment < start + seconds * 1000; ) {
    for (const now = performance.now(); moment <= now; moment -= (Math.log(1 - Math.random()) * 1000) / rate) {
      if (under.size === connections) {
        unsent++;
        continue;
      }
      const sending = one(moment)
        .catch(() => void otherErrors++)
        .finally(() => under.delete(sending));
      under.add(sending);
    }
    await setTimeout(1);
  }
  await Promise.all(under);
  agent.destroy();
  return { times: Float64Array.from(times), refused, unsent, otherErrors };
}
