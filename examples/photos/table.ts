// The table at the end of a run.
import Table from 'cli-table3';
import type { DeviceInfo } from 'millrace';
import type { StageName } from './timeline.js';

export interface Summary {
  readonly device: DeviceInfo;
  readonly written: number;
  readonly skipped: number;
  readonly pixels: number;
  readonly wallMs: number;
  readonly bottleneck: { readonly stage: StageName; readonly busyMs: number };
  readonly loopDelayP99Ms: number;
}

export function formatSummary(summary: Summary): string {
  const { device, wallMs, bottleneck } = summary;
  const table = new Table({ style: { head: [], border: [] } });
  table.push(
    ['images', `${String(summary.written)} written, ${String(summary.skipped)} skipped`],
    ['speed', wallMs > 0 ? `${(summary.pixels / 1e6 / (wallMs / 1000)).toFixed(1)} megapixels/s` : '-'],
    ['time', `${(wallMs / 1000).toFixed(2)} s`],
    ['device', `${device.id} (${device.name})`],
    ['overlap', wallMs > 0 ? `${((bottleneck.busyMs / wallMs) * 100).toFixed(0)} % of the ideal, bound by ${bottleneck.stage}` : '-'],
    ['event-loop delay p99', `${summary.loopDelayP99Ms.toFixed(2)} ms`],
  );
  return table.toString();
}
