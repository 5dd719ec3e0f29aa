// The OpenTelemetry example: a service under load, whose spans tell where its device's time went.
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { InMemorySpanExporter, NodeTracerProvider, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { describe, expect, test } from 'vitest';
import { type DeviceName, listDevices, openDevice } from 'millrace';
import { recordTimeline } from 'millrace/timeline';
import { Instrumentation } from '../../examples/telemetry/instrument.js';
import { blur, createService } from '../../examples/telemetry/service.js';

const REQUESTS = 400;
/** Of the device's own time. */
const TOLERANCE = 0.02;
const WORK = ['launch', 'copy', 'fill'];

const gpus = (await listDevices()).filter(({ backend }) => backend === 'cuda').map(({ id }) => id);
for (const name of ['cpu:0', ...gpus.slice(0, 1)] as DeviceName[]) {
  describe(name, () => {
    test('the device times of the spans of all requests add up to what the device has worked', { timeout: 60_000 }, async () => {
      const spans = new InMemorySpanExporter();
      const tracing = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
      const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
      const reader = new PeriodicExportingMetricReader({ exporter: metrics, exportIntervalMillis: 60_000 });
      const metering = new MeterProvider({ readers: [reader] });
      await using device = await openDevice(name);
      await device.compile(blur);
      const instrumentation = new Instrumentation(tracing.getTracer('test'), metering.getMeter('test'), device);
      const recording = recordTimeline(device);
      const values = Float32Array.from({ length: 1 << 14 }, (_, at) => at % 7);
      {
        await using service = createService(device);
        const answers = Array.from({ length: REQUESTS }, (_, n) =>
          instrumentation.request('blur', () => service.run({ values, rounds: 1 + (n % 5) })),
        );
        expect((await Promise.all(answers))[0]![100]).toBeCloseTo(values.slice(92, 109).reduce((sum, value) => sum + value, 0) / 17, 4);
        await expect(instrumentation.request('wrong', () => service.run({ values, rounds: 0 }))).rejects.toThrow('The rounds (0)');
      }
      await recording.stop();
      // The last requests' usages.
      while (spans.getFinishedSpans().filter(({ name: each }) => each === 'blur').length < REQUESTS) await new Promise(setImmediate);
      await reader.forceFlush();
      instrumentation.stop();

      const finished = spans.getFinishedSpans();
      const requests = finished.filter(({ name: each }) => each === 'blur');
      const ms = requests.reduce((sum, { attributes }) => sum + (attributes['millrace.device_ms'] as number), 0);
      const own = recording.operations
        .filter(({ kind, startMs }) => WORK.includes(kind) && startMs !== undefined)
        .reduce((sum, { startMs, endMs }) => sum + (endMs! - startMs!), 0);
      expect(own).toBeGreaterThan(0);
      console.log(`${name}: spans ${ms.toFixed(3)} ms, recording ${own.toFixed(3)} ms`);
      expect(Math.abs(ms - own) / own).toBeLessThan(TOLERANCE);

      const parentOf = (span: ReadableSpan): ReadableSpan | undefined =>
        finished.find((each) => each.spanContext().spanId === span.parentSpanContext?.spanId);
      const launches = finished.filter(({ name: each }) => each === 'launch blur');
      expect(launches).toHaveLength(REQUESTS * 3);
      for (const launch of launches.slice(0, 10)) {
        const item = parentOf(launch)!;
        expect([item.name, parentOf(item)!.name]).toEqual(['item', 'blur']);
      }
      const [wrong] = finished.filter(({ name: each }) => each === 'wrong');
      expect(wrong!.status.message).toBe('The rounds (0) are not at least 1.');

      const told = metrics
        .getMetrics()
        .at(-1)!
        .scopeMetrics.flatMap((scope) => scope.metrics);
      const pointsOf = (metric: string): readonly { readonly value: unknown }[] =>
        told.find(({ descriptor }) => descriptor.name === metric)?.dataPoints ?? [];
      const sumOf = (metric: string): number => pointsOf(metric).reduce((sum, { value }) => sum + Number(value), 0);
      expect(sumOf('millrace.device.time')).toBeCloseTo(ms, 3);
      expect(sumOf('millrace.copied')).toBe(REQUESTS * 2 * values.byteLength);
      expect(told.map(({ descriptor }) => descriptor.name)).toContain('millrace.queue.depth');
      await Promise.all([tracing.shutdown(), metering.shutdown()]);
    });
  });
}
