// The machine and the versions, in one line.
import { spawnSync } from 'node:child_process';
import os from 'node:os';
import type { DeviceInfo } from 'millrace';

export function machineLine(device: DeviceInfo, note: string | undefined): string {
  const cpus = os.cpus();
  const gpu = device.backend === 'cuda' ? [`${device.name}, driver ${driverVersion() ?? 'unknown'}`] : [];
  const memory = Math.round(os.totalmem() / 2 ** 30);
  const parts = [
    ...gpu,
    `${cpus[0]?.model.trim() ?? 'unknown processor'}, ${cpus.length} cores, ${memory} GiB`,
    `${os.type()} ${os.release()}`,
    `Node ${process.versions.node}`,
    `load ${os.loadavg()[0]!.toFixed(1)} at the start`,
  ];
  return [...parts, ...(note === undefined ? [] : [note])].join('; ');
}

function driverVersion(): string | undefined {
  const { status, stdout } = spawnSync('nvidia-smi', ['--query-gpu=driver_version', '--format=csv,noheader'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim().split('\n')[0] : undefined;
}
