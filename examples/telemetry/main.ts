// Serves some hundred requests, and prints the spans of one of them and the metrics: node build/js/examples/telemetry/main.js [DEVICE]
import { InMemoryMetricExporter, AggregationTemporality, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { InMemorySpanExporter, NodeTracerProvider, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { type DeviceSpec, openDevice } from 'millrace';
import { Instrumentation } from './instrument.js';
import { blur, createService } from './service.js';

const REQUESTS = 300;

const spans = new InMemorySpanExporter();
const tracing = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter: metrics, exportIntervalMillis: 1000 });
const metering = new MeterProvider({ readers: [reader] });

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);
await device.compile(blur);
const instrumentation = new Instrumentation(tracing.getTracer('service'), metering.getMeter('service'), device);
await using service = createService(device);
const values = Float32Array.from({ length: 1 << 14 }, (_, at) => Math.sin(at));
const requests = Array.from({ length: REQUESTS }, (_, n) =>
  instrumentation.request('blur', () => service.run({ values, rounds: 1 + (n % 5) })),
);
await Promise.all(requests);
await device.synchronize();
await reader.forceFlush();
instrumentation.stop();

const finished = spans.getFinishedSpans();
const [request] = finished.filter(({ name }) => name === 'blur');
if (request === undefined) throw new Error('No request has a span.');
const show = (span: ReadableSpan, depth: number): void => {
  const ms = span.duration[0] * 1e3 + span.duration[1] / 1e6;
  console.log(`${'  '.repeat(depth)}${span.name} ${ms.toFixed(2)} ms ${JSON.stringify(span.attributes)}`);
  for (const inner of finished) if (inner.parentSpanContext?.spanId === span.spanContext().spanId) show(inner, depth + 1);
};
show(request, 0);
for (const { scopeMetrics } of metrics.getMetrics().slice(-1))
  for (const { descriptor, dataPoints } of scopeMetrics.flatMap((scope) => scope.metrics))
    for (const { attributes, value } of dataPoints) console.log(descriptor.name, JSON.stringify(attributes), JSON.stringify(value));
