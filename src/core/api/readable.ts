// `array.toReadable`: the bytes of an array as a web stream. Each chunk is a `read` of its own into a new buffer. At most one chunk is read or
// queued beyond what the consumer has taken.
// Thread: owner.
import { checkInteger } from '../base/arguments.js';
import { checkOptionNames } from '../base/option-names.js';
import { AbortError, LimitError } from '../base/errors.js';
import { MAX_HOST_BYTES } from '../base/host-bytes.js';
import { DTYPES, type DType } from '../elements/dtype.js';
import { onAbort } from '../waits/abort-listeners.js';
import { checkWaitOptions, type WaitOptions, withSignal } from '../waits/wait.js';

/** Options of `array.toReadable`. Bad values are an ArgumentError of the call. */
export interface ReadableOptions {
  /**
   * Bytes of a chunk, at least one element and at most `buffer.constants.MAX_LENGTH`; default 1 MiB. It is rounded down to whole elements.
   * The last chunk may be smaller.
   */
  readonly chunkBytes?: number;
  /** If it aborts, the stream errors with an AbortError, whose `cause` is the signal's reason. */
  readonly signal?: AbortSignal;
}

const DEFAULT_CHUNK_BYTES = 2 ** 20;
/** A byte stream asks for more while fewer bytes than this are queued: one chunk ahead, whatever its size. */
const LEAST_QUEUED_BYTES = 1;

/** Reads the bytes of elements `from` to `to` in flat order. */
type ReadFlat = (from: number, to: number, opts: WaitOptions) => Promise<Uint8Array<ArrayBuffer>>;

interface FlatElements {
  readonly dtype: DType;
  /** The number of elements. */
  readonly length: number;
}

/** `array.toReadable`. */
export function readableOf(
  array: FlatElements,
  readFlat: ReadFlat,
  opts: ReadableOptions | undefined,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const source = new ArraySource(array, readFlat, opts);
  const stream = new ReadableStream(
    {
      type: 'bytes',
      start: (controller) => source.start(controller),
      pull: (controller) => source.pull(controller),
      cancel: () => source.stop(),
    },
    { highWaterMark: LEAST_QUEUED_BYTES },
  );
  return stream as ReadableStream<Uint8Array<ArrayBuffer>>;
}

class ArraySource {
  readonly #length: number;
  readonly #readFlat: ReadFlat;
  /** Elements of a chunk. */
  readonly #chunkLength: number;
  readonly #signal: AbortSignal | undefined;
  readonly #canceled: AbortController = new AbortController();
  #at = 0;
  #isOver = false;
  #stopListening: (() => void) | undefined = undefined;

  constructor({ dtype, length }: FlatElements, readFlat: ReadFlat, opts: ReadableOptions | undefined) {
    if (opts !== undefined) checkOptionNames(opts, ['chunkBytes', 'signal']);
    const { chunkBytes = DEFAULT_CHUNK_BYTES, signal } = opts ?? {};
    const { byteSize } = DTYPES[dtype];
    checkInteger('chunkBytes', chunkBytes, byteSize, MAX_HOST_BYTES);
    if (signal !== undefined) checkWaitOptions({ signal });
    this.#length = length;
    this.#readFlat = readFlat;
    this.#chunkLength = Math.floor(chunkBytes / byteSize);
    this.#signal = signal;
  }

  start(controller: ReadableByteStreamController): void {
    const signal = this.#signal;
    if (this.#length === 0) this.#close(controller);
    else if (signal?.aborted === true) this.#fail(controller, signal);
    else if (signal !== undefined) this.#stopListening = onAbort(signal, () => this.#fail(controller, signal));
  }

  /** Called for one chunk at a time. An error that this rejects with becomes the error of the stream. */
  async pull(controller: ReadableByteStreamController): Promise<void> {
    const end = Math.min(this.#at + this.#chunkLength, this.#length);
    let chunk: Uint8Array<ArrayBuffer>;
    try {
      chunk = await this.#read(this.#at, end);
    } catch (error) {
      if (this.#isOver) return;
      this.stop();
      throw error;
    }
    if (this.#isOver) return;
    this.#at = end;
    controller.enqueue(chunk);
    if (end === this.#length) this.#close(controller);
  }

  /** Gives up the chunk that is being read. Its memory is freed when the device has finished with it. */
  stop(): void {
    this.#isOver = true;
    this.#stopListening?.();
    this.#canceled.abort();
  }

  async #read(from: number, to: number): Promise<Uint8Array<ArrayBuffer>> {
    for (;;) {
      try {
        return await this.#readFlat(from, to, withSignal(undefined, this.#canceled.signal));
      } catch (error) {
        if (this.#isOver || !(error instanceof LimitError)) throw error;
        // The device has no room for another operation: wait until it has.
        await error.retryAfter;
      }
    }
  }

  #close(controller: ReadableByteStreamController): void {
    this.stop();
    controller.close();
    // A reader that passed its own buffer waits for an answer, too.
    controller.byobRequest?.respond(0);
  }

  #fail(controller: ReadableByteStreamController, signal: AbortSignal): void {
    this.stop();
    controller.error(new AbortError(signal));
  }
}
