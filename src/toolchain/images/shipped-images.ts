// Images of kernels of `millrace/ops` that come with the platform package, for the CPU device: one file beside the addon, which
// scripts/package.mjs makes of a folder of images. Blocks of images are compressed together, because their kernels are alike. The file is
// trusted as the addon is: whoever can write to one can replace the other.
import { readFileSync } from 'node:fs';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import { type ImageTarget, targetOf, targetsOfProcessor } from '../base/image-targets.js';
import { processorFlags } from '../base/package-and-cpu-identity.js';
import { outside } from '../system/environment-errors.js';

/** Uncompressed. A larger block takes longer than a millisecond or two to decompress; smaller ones together take more room. */
const BLOCK_BYTES = 512 << 10;

interface Index {
  /** The identity of the package whose emitters wrote the sources. */
  readonly package: string;
  readonly compiler: string;
  readonly targets: readonly string[];
  /** The first byte of each block behind the index, and where the last one ends. */
  readonly blocks: readonly number[];
  /** By the names of the images' files: the block, and the first and last byte there. */
  readonly images: Readonly<Record<string, readonly [block: number, start: number, end: number]>>;
}

/** The file for these images. Images of a block should be alike, so the caller sorts them. */
export function packImages(
  images: readonly { readonly file: string; readonly content: Uint8Array }[],
  facts: Pick<Index, 'package' | 'compiler' | 'targets'>,
): Buffer {
  const blocks: Buffer[] = [];
  const places: Record<string, readonly [number, number, number]> = {};
  let open: Uint8Array[] = [];
  let filled = 0;
  const close = (): void => {
    if (filled === 0) return;
    const params = { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS, [constants.BROTLI_PARAM_SIZE_HINT]: filled };
    blocks.push(brotliCompressSync(Buffer.concat(open), { params }));
    [open, filled] = [[], 0];
  };
  for (const { file, content } of images) {
    places[file] = [blocks.length, filled, filled + content.length];
    open.push(content);
    filled += content.length;
    if (filled >= BLOCK_BYTES) close();
  }
  close();
  const starts = [0];
  for (const { length } of blocks) starts.push(starts.at(-1)! + length);
  const index = Buffer.from(JSON.stringify({ ...facts, blocks: starts, images: places } satisfies Index));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(index.length);
  return Buffer.concat([length, index, ...blocks]);
}

export class ShippedImages {
  readonly #bytes: Buffer;
  readonly #index: Index;
  readonly #blocks: number;
  readonly #targets: readonly ImageTarget[];
  /** The block that was read last: the images of one operation are often in one. */
  #last: { readonly block: number; readonly bytes: Buffer } | undefined;

  /** Throws an UnavailableError for a file that cannot be read or is damaged. */
  constructor(path: string) {
    try {
      this.#bytes = readFileSync(path);
      this.#blocks = 4 + this.#bytes.readUInt32LE(0);
      this.#index = JSON.parse(this.#bytes.toString('utf8', 4, this.#blocks)) as Index;
      this.#targets = targetsOfProcessor(
        this.#index.targets.flatMap((name) => targetOf(name) ?? []),
        processorFlags(),
      );
    } catch (error) {
      throw outside(`The images of operations in ${path} cannot be read`, error);
    }
  }

  /** Those that this processor runs, the best first. */
  get targets(): readonly ImageTarget[] {
    return this.#targets;
  }

  get compiler(): string {
    return this.#index.compiler;
  }

  /** Whether this package's emitters wrote the sources. */
  isOf(identity: string): boolean {
    return this.#index.package === identity;
  }

  /** The image of this file, undefined if there is none. Throws for a damaged block. */
  find(file: string): Buffer | undefined {
    const place = this.#index.images[file];
    if (place === undefined) return undefined;
    const [block, start, end] = place;
    if (this.#last?.block !== block) {
      const [from, to] = [this.#index.blocks[block]!, this.#index.blocks[block + 1]!];
      this.#last = { block, bytes: brotliDecompressSync(this.#bytes.subarray(this.#blocks + from, this.#blocks + to)) };
    }
    return this.#last.bytes.subarray(start, end);
  }
}
