// A predictor of the service example whose answers come when the test says so.
import type { WaitOptions } from 'millrace';
import type { Predictor } from '../../examples/service/predictor.js';

export class Held<A = Float32Array> implements Predictor<Uint8Array, A> {
  readonly report = (): undefined => undefined;
  readonly requests: { readonly signal: AbortSignal | undefined; readonly answer: (answer: A) => void }[] = [];
  waiting = 0;

  run(_pixels: Uint8Array, { signal }: WaitOptions = {}): Promise<A> {
    return new Promise((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason as Error));
      this.requests.push({ signal, answer: resolve });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  async until(count: number): Promise<void> {
    while (this.requests.length < count) await new Promise(setImmediate);
  }
}
