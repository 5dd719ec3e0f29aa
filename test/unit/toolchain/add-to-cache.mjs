// Adds and reads one cache file repeatedly: node add-to-cache.mjs DIRECTORY TIMES.
import { KernelCache } from '../../../dist/toolchain/images/cache.js';

const [directory, times] = process.argv.slice(2);
const content = Buffer.alloc(200_000, 7);
let whole = 0;
for (let i = 0; i < Number(times); i++) {
  const cache = new KernelCache({ MILLRACE_CACHE_DIR: directory });
  await cache.add('same.so', content);
  const found = await cache.find('same.so');
  if (found?.content.equals(content)) whole++;
}
process.stdout.write(`whole ${whole} of ${times}\n`);
