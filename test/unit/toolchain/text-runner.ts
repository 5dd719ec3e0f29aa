// CUDA C++ sources, built as a device builds them and run without one.
import { join } from 'node:path';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { type ImageArgument, type ImageLaunch, ImageRunner, specOf } from './run-image.js';

export class TextRunner {
  readonly #runner: ImageRunner = new ImageRunner();
  readonly #builder: KernelBuilder = new KernelBuilder(
    { backend: 'cpu' },
    { ...process.env, MILLRACE_CACHE_DIR: join(this.#runner.directory, 'cache') },
  );

  /** Arrays hold what the kernel left in them afterwards. Returns what it printed. */
  async run(
    source: string,
    entry: string,
    launch: ImageLaunch,
    args: readonly ImageArgument[],
    more: Partial<BuildSpec> = {},
  ): Promise<string> {
    const { image } = await this.#builder.build(specOf(source, entry, more));
    return this.#runner.run(image, entry, launch, args);
  }

  close(): void {
    this.#runner.close();
  }
}
