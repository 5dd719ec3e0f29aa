import { readdirSync } from 'node:fs';

/** What the process holds after collections of garbage. */
export function held() {
  for (let n = 0; n < 3; n++) globalThis.gc();
  const { rss, heapUsed, arrayBuffers } = process.memoryUsage();
  const descriptors = readdirSync('/proc/self/fd').length;
  const threads = readdirSync('/proc/self/task').length;
  return { descriptors, threads, rssMiB: rss / 2 ** 20, heapMiB: (heapUsed + arrayBuffers) / 2 ** 20 };
}
