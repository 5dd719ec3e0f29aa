// OpenTelemetry for a program that uses Millrace: spans of requests, items, launches, copies and builds, and metrics of the device. The
// library knows nothing of OpenTelemetry; everything comes from its diagnostics channels and from `usage`.
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import {
  type Attributes,
  type Context,
  context,
  type Meter,
  type ObservableResult,
  type Span,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import type { CompileMessage, Device, ItemMessage, OperationMessage } from 'millrace';
import { usage } from 'millrace/timeline';

/** What every message of a tracing channel has. */
interface Message {
  readonly error?: unknown;
}

export class Instrumentation {
  readonly #tracer: Tracer;
  readonly #parents: AsyncLocalStorage<Context> = new AsyncLocalStorage();
  readonly #ends: (() => void)[] = [];
  readonly #deviceTime;
  readonly #bytes;
  readonly #failures;

  constructor(tracer: Tracer, meter: Meter, device: Device) {
    this.#tracer = tracer;
    this.#deviceTime = meter.createCounter('millrace.device.time', {
      unit: 'ms',
      description: 'Time for which the device worked for requests',
    });
    this.#bytes = meter.createCounter('millrace.copied', { unit: 'By' });
    this.#failures = meter.createCounter('millrace.failures');
    const depth = meter.createObservableGauge('millrace.queue.depth', {
      description: 'Operations that were submitted and have not finished',
    });
    const observe = (result: ObservableResult): void => {
      for (const { stream, device: name, pending } of device.inspect().streams) result.observe(pending, { device: name, stream });
    };
    depth.addCallback(observe);
    this.#ends.push(() => depth.removeCallback(observe));

    this.#traced<OperationMessage>('millrace:launch', ({ name, device: on, stream }) => [`launch ${name}`, { device: on, stream }]);
    this.#traced<OperationMessage>('millrace:copy', ({ name = 'copy', device: on, stream }) => [name, { device: on, stream }]);
    this.#traced<ItemMessage>('millrace:item', ({ device: on, lane, item, attempt }) => ['item', { device: on, lane, item, attempt }]);
    this.#traced<CompileMessage>('millrace:compile', ({ kernel, device: on }) => [`compile ${kernel}`, { device: on }]);
    const failed = (message: unknown): void => this.#failures.add(1, { device: (message as { device: string }).device });
    subscribe('millrace:error', failed);
    this.#ends.push(() => unsubscribe('millrace:error', failed));
  }

  /** Runs a request in a span, which gets what the request cost when its last operation has ended. */
  request<T>(name: string, fn: () => Promise<T>): Promise<T> {
    const parent = this.#parent;
    const span = this.#tracer.startSpan(name, {}, parent);
    const { value, used } = usage(() => this.#parents.run(trace.setSpan(parent, span), fn));
    let endedAt: number | undefined;
    value.then(
      () => (endedAt = Date.now()),
      (error: unknown) => {
        endedAt = Date.now();
        fail(span, error);
      },
    );
    void used.then(({ deviceMs = 0, launches, bytesToDevice, bytesToHost, peakBytes, devices }) => {
      span.setAttributes({
        'millrace.device_ms': deviceMs,
        'millrace.launches': launches,
        'millrace.bytes_to_device': bytesToDevice,
        'millrace.bytes_to_host': bytesToHost,
        'millrace.peak_bytes': peakBytes,
      });
      for (const each of devices) {
        this.#deviceTime.add(each.deviceMs ?? 0, { device: each.device });
        this.#bytes.add(each.bytesToDevice, { device: each.device, direction: 'to-device' });
        this.#bytes.add(each.bytesToHost, { device: each.device, direction: 'to-host' });
      }
      span.end(endedAt);
    });
    return value;
  }

  /** Listens no more. */
  stop(): void {
    for (const end of this.#ends.splice(0)) end();
  }

  get #parent(): Context {
    return this.#parents.getStore() ?? context.active();
  }

  /** A span for each message of a tracing channel; what the call does is inside of it. */
  #traced<M extends object>(name: string, describe: (message: M) => readonly [name: string, attributes: Attributes]): void {
    const spans: WeakMap<object, Span> = new WeakMap();
    const channel = tracingChannel<Context, M>(name);
    channel.start.bindStore(this.#parents, (message) => {
      const parent = this.#parent;
      const [spanName, attributes] = describe(message);
      const span = this.#tracer.startSpan(spanName, { attributes }, parent);
      spans.set(message, span);
      return trace.setSpan(parent, span);
    });
    const listeners = {
      start: () => undefined,
      error: (message: M & Message) => fail(spans.get(message), message.error),
      // Of a call that throws, this is the last message.
      end: (message: M & Message) => {
        if (message.error !== undefined) spans.get(message)?.end();
      },
      asyncStart: () => undefined,
      asyncEnd: (message: M & { readonly deviceMs?: number }) => {
        const span = spans.get(message);
        if (message.deviceMs !== undefined) span?.setAttribute('millrace.device_ms', message.deviceMs);
        span?.end();
      },
    };
    channel.subscribe(listeners);
    this.#ends.push(() => {
      channel.unsubscribe(listeners);
      channel.start.unbindStore(this.#parents);
    });
  }
}

function fail(span: Span | undefined, error: unknown): void {
  const { message } = error as Error;
  span?.recordException(error as Error);
  span?.setStatus({ code: SpanStatusCode.ERROR, message });
}
