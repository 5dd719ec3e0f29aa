// A queue in the memory of the test, with the rules of a server: what is unacknowledged for `ackWaitMs` is delivered again. Tests say when it is away.
import { UnavailableError } from 'millrace';
import type { OpenedSink, OpenedSource, QueueDelivery, QueueSink, QueueSource } from 'millrace/queue';

interface Kept {
  readonly id: string;
  readonly data: number;
  deliveries: number;
  /** 'waiting' items may be delivered from `from` on; 'out' ones again from then on. */
  state: 'waiting' | 'out' | 'done' | 'dead';
  from: number;
}

export class MemoryQueue {
  readonly items: Kept[];
  readonly results: Map<string, unknown> = new Map();
  readonly dead: { readonly id: string; readonly error: Error; readonly deliveries: number }[] = [];
  /** What was called, in order: 'next', 'deliver 1', 'store 1', 'ack 1', 'nak 1 100', 'dead 1', 'working 1'. */
  readonly calls: string[] = [];
  most = 0;
  /** Requests fail while it is. */
  isAway = false;
  isSourceClosed = false;
  isSinkClosed = false;
  readonly #ackWaitMs: number;
  readonly #remembersMs: number;

  constructor(data: readonly number[], ackWaitMs = 30_000, remembersMs = Number.POSITIVE_INFINITY) {
    this.items = data.map((value) => ({ id: `i${value}`, data: value, deliveries: 0, state: 'waiting', from: 0 }));
    this.#ackWaitMs = ackWaitMs;
    this.#remembersMs = remembersMs;
  }

  get unacknowledged(): number {
    return this.items.filter(({ state }) => state === 'out').length;
  }

  get isEmpty(): boolean {
    return this.items.every(({ state }) => state === 'done' || state === 'dead');
  }

  readonly source: QueueSource<number> = {
    open: (): Promise<OpenedSource<number>> =>
      Promise.resolve({
        ackWaitMs: this.#ackWaitMs,
        next: () => this.#next(),
        close: async () => void (this.isSourceClosed = true),
      }),
  };

  readonly sink: QueueSink<unknown> = {
    open: (): Promise<OpenedSink> =>
      Promise.resolve({
        remembersMs: this.#remembersMs,
        store: async (id, result) => {
          this.#check();
          this.calls.push(`store ${id}`);
          if (this.results.has(id)) return false;
          this.results.set(id, result);
          return true;
        },
        close: async () => void (this.isSinkClosed = true),
      }),
  };

  #check(): void {
    if (this.isAway) throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', 'The queue is away.', []);
  }

  async #next(): Promise<QueueDelivery<number> | undefined> {
    this.calls.push('next');
    this.#check();
    for (let round = 0; round < 20; round++) {
      const item = this.items.find(({ state, from }) => (state === 'waiting' || state === 'out') && from <= performance.now());
      if (item) return this.#deliver(item);
      await new Promise((resolve) => void setTimeout(resolve, 5));
    }
    return undefined;
  }

  #deliver(item: Kept): QueueDelivery<number> {
    item.state = 'out';
    item.deliveries++;
    const working = async (): Promise<void> => void (item.from = performance.now() + this.#ackWaitMs);
    void working();
    this.calls.push(`deliver ${item.id}`);
    this.most = Math.max(this.most, this.unacknowledged);
    const end = (call: string, state: Kept['state']): void => {
      this.#check();
      this.calls.push(call);
      item.state = state;
    };
    const { id, data, deliveries } = item;
    return {
      id,
      data,
      deliveries,
      message: item,
      working: () => {
        this.calls.push(`working ${id}`);
        return working();
      },
      ack: async () => end(`ack ${id}`, 'done'),
      nak: async (delayMs) => {
        end(`nak ${id} ${delayMs}`, 'waiting');
        item.from = performance.now() + delayMs;
      },
      deadLetter: async (error) => {
        end(`dead ${id}`, 'dead');
        this.dead.push({ id, error, deliveries });
      },
    };
  }
}
