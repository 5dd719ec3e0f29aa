// Requests of a device's owner to its worker that wait for an answer. Each kind of request has ids of its own: a handle, the number of a
// module, or a running number.
// Thread: owner.
import { decodeError } from '../core/base/errors.js';
import type { BuildReport, ModuleReport } from '../core/channel/channel.js';
import type { FaultSource } from '../core/channel/build-spec.js';
import type { FromWorker, ToWorker } from './messages.js';

/** What a request of each kind resolves with. */
export interface Answers {
  build: BuildReport;
  module: ModuleReport;
  variable: void;
  unregister: void;
  collect: ArrayBuffer;
  ask: unknown;
  locate: FaultSource;
}

type Kind = keyof Answers;

export type Request = Extract<ToWorker, { readonly type: Kind }>;

interface Settling {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

interface DeviceFacts {
  readonly device: string;
  readonly isApart: boolean;
}

export class WorkerRequests {
  readonly #device: () => DeviceFacts;
  readonly #send: (message: ToWorker) => void;
  readonly #pending: Record<Kind, Map<number, Settling>> = {
    build: new Map(),
    module: new Map(),
    variable: new Map(),
    unregister: new Map(),
    collect: new Map(),
    ask: new Map(),
    locate: new Map(),
  };

  /** `device`: for errors. `send` posts a message to the worker. */
  constructor(device: () => DeviceFacts, send: (message: ToWorker) => void) {
    this.#device = device;
    this.#send = send;
  }

  /** Sends a request. The promise settles with its answer, or rejects with the error of `end`. */
  request<M extends Request>(id: number, message: M): Promise<Answers[M['type']]> {
    return new Promise((resolve, reject) => {
      this.#pending[message.type].set(id, { resolve, reject });
      this.#send(message);
    });
  }

  /** Are there unanswered requests of this kind? */
  hasPending(kind: Kind): boolean {
    return this.#pending[kind].size > 0;
  }

  /** Settles the request that the message answers. Returns false if it answers none. */
  settle(message: FromWorker): boolean {
    switch (message.type) {
      case 'built': {
        const { compiler, fromCache, ms, limits } = message;
        this.#take('build', message.handle)?.resolve({ compiler, fromCache, ms, limits });
        return true;
      }
      case 'buildFailed':
        return this.#reject('build', message.handle, message);
      case 'moduleLoaded': {
        const { compiler, fromCache, ms } = message;
        this.#take('module', message.module)?.resolve({ compiler, fromCache, ms });
        return true;
      }
      case 'moduleFailed':
        return this.#reject('module', message.module, message);
      case 'variableBound':
        this.#take('variable', message.handle)?.resolve(undefined);
        return true;
      case 'variableFailed':
        return this.#reject('variable', message.handle, message);
      case 'unregistered':
        this.#take('unregister', message.handle)?.resolve(undefined);
        return true;
      case 'collected':
        this.#take('collect', message.handle)?.resolve(message.buffer);
        return true;
      case 'notLent':
        return this.#reject('collect', message.handle, message);
      case 'answered':
        this.#take('ask', message.id)?.resolve(message.value);
        return true;
      case 'located':
        this.#take('locate', message.id)?.resolve(message.source);
        return true;
      case 'refused':
        return this.#reject('ask', message.id, message);
      default:
        return false;
    }
  }

  /** The worker has ended: no request will be answered. */
  end(error: Error): void {
    for (const pending of Object.values(this.#pending)) {
      for (const { reject } of pending.values()) reject(error);
      pending.clear();
    }
  }

  #reject(kind: Kind, id: number, { error }: Extract<FromWorker, { readonly error: unknown }>): true {
    this.#take(kind, id)?.reject(decodeError(error, this.#device()));
    return true;
  }

  #take(kind: Kind, id: number): Settling | undefined {
    const settling = this.#pending[kind].get(id);
    this.#pending[kind].delete(id);
    return settling;
  }
}
