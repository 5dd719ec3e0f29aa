import { readdirSync } from 'node:fs';

/** Open descriptors and threads. */
export function counts() {
  return { descriptors: readdirSync('/proc/self/fd').length, threads: readdirSync('/proc/self/task').length };
}

/** What the process holds after collections of garbage. */
export function held() {
  for (let n = 0; n < 3; n++) globalThis.gc();
  const { rss, heapUsed, arrayBuffers } = process.memoryUsage();
  return { ...counts(), rssMiB: rss / 2 ** 20, heapMiB: (heapUsed + arrayBuffers) / 2 ** 20 };
}
