// Builds the kernels of the operations of shipped-operations.mjs for a platform package, into one file beside the addon (docs/decisions/0058).
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createTestClock, createTestDevice, testKernel } from '../dist/testing/index.js';
import { SHIPPED_OPERATIONS } from '../dist/native/addon-place.js';
import { imageTargets } from '../dist/toolchain/base/image-targets.js';
import { buildAhead } from '../dist/toolchain/images/build-ahead.js';
import { readImage } from '../dist/toolchain/images/cache.js';
import { packImages } from '../dist/toolchain/images/shipped-images.js';
import { callShipped } from './shipped-operations.mjs';
import { parallel, root } from './tools.mjs';

/** The level that most processors of the last ten years have, and AVX-512, with which matmul and sort need two thirds of the time. Others compile. */
const TARGETS = { x64: 'cpu:x86-64-v3,cpu:x86-64-v4', arm64: 'cpu:aarch64' };

/** A kernel takes seconds. On a machine whose cores have other work it takes minutes, and a package without it would be worse than a late one. */
const COMPILER_TIMEOUT_MS = 30 * 60_000;
const TELL_MS = 10_000;

/**
 * The kernels that the calls launch. They are made on a test device, which compiles none, again and again: calls that wait go on only when their
 * first kernels are known.
 */
async function kernelsOf(dtypes) {
  // As `millrace build` lists them, from now on, without those for GPUs.
  const list = (globalThis[Symbol.for('millrace.definitions')] = Object.assign([], { isForCpu: true }));
  const ops = await import('../dist/ops/index.js');
  const { emitWarning } = process;
  // Of kernels that the device does not know yet.
  process.emitWarning = () => {};
  for (let known = -1; known < list.length; ) {
    known = list.length;
    const clock = createTestClock();
    const device = createTestDevice({ clock, kernels: list.map((kernel) => testKernel(kernel, { run: fillOnes })) });
    await clock.run(async () => {
      for (const { arrays } of await callShipped(ops, device, dtypes)) for (const array of arrays) array[Symbol.dispose]();
    });
    await device.close();
  }
  process.emitWarning = emitWarning;
  return list;
}

/** Ones, so that counts which calls wait for are not 0: then nothing would follow. */
function fillOnes(args) {
  for (const value of Object.values(args)) if (ArrayBuffer.isView(value)) value.fill(typeof value[0] === 'bigint' ? 1n : 1);
}

/** Writes the file to a package's folder. `dtypes`: only these, for tests. Returns what was built. */
export async function writeShippedImages(folder, cpu, dtypes) {
  const definitions = await kernelsOf(dtypes);
  const between = join(root, 'build/package', `operations-${cpu}`);
  rmSync(between, { recursive: true, force: true });
  mkdirSync(between, { recursive: true });
  const targets = imageTargets(TARGETS[cpu]);
  const failures = [];
  const total = definitions.length * targets.length;
  const count = Math.min(total, Number(parallel));
  const what = `kernels of operations for ${cpu}`;
  console.log(
    `Compiling ${total} ${what} (${targets.map(({ name }) => name).join(', ')}), ${count} at a time; those of an earlier run are in the cache.`,
  );
  let made = 0;
  let toldMs = Date.now();
  const manifest = await buildAhead({
    definitions,
    targets,
    folder: between,
    compilerTimeoutMs: COMPILER_TIMEOUT_MS,
    done: ({ kernel, target, error }) => {
      if (error !== undefined) failures.push(`${kernel} for ${target}: ${error.message}`);
      made++;
      if (Date.now() - toldMs < TELL_MS && made < total) return;
      toldMs = Date.now();
      console.log(`${made} of ${total} ${what}; the last was ${kernel} for ${target}.`);
    },
  });
  if (failures.length > 0) {
    console.error(`${failures.length} of ${total} ${what} were not built:\n${failures.join('\n')}`);
    console.error(
      'Run the same command again: what was compiled is in the cache and takes no time. If the machine has other work, end that first.',
    );
    process.exit(1);
  }
  // Alike images are neighbours, so that they are compressed together; kernels that differ in names only have one.
  const files = [...new Set(manifest.images.map(({ file }) => file))];
  const images = files.map((file) => ({ file, content: readImage(join(between, file), {}).content }));
  const file = packImages(images, { package: manifest.package, compiler: manifest.images[0].compiler, targets: manifest.targets });
  writeFileSync(join(folder, SHIPPED_OPERATIONS), file);
  return { kernels: definitions.length, images: images.length, bytes: file.length };
}
