// Foreign libraries for tests of `external`, called through an FFI package: libc on the CPU device, the driver on CUDA.
import koffi from 'koffi';
import type { Device, RawStream } from 'millrace';

/** Where foreign work goes: the stream, and the context for calls after an await. */
type Raw = Pick<RawStream, 'stream' | 'context'>;

export interface Foreign {
  /** Writes `count` words of 4 bytes. */
  fill(raw: Raw, address: bigint, word: number, count: number): void;
  /** Copies bytes. */
  copy(raw: Raw, to: bigint, from: bigint, bytes: number): void;
  /** Calls `fn` with the context current, as an asynchronous function needs it. */
  within(raw: Raw, fn: () => void): void;
  /** The context that is current on this thread. */
  current(): bigint;
  /** Waits for the stream. */
  synchronize(raw: Raw): void;
}

/** The CUDA driver that the library uses. */
export function cudaDriver(): ReturnType<typeof koffi.load> {
  return koffi.load(process.env['MILLRACE_CUDA_DRIVER'] ?? 'libcuda.so.1');
}

/** Throws for every status but success. */
export function checked(status: number, name: string): void {
  if (status !== 0) throw new Error(`${name} returned ${status}`);
}

function onCuda(): Foreign {
  const driver = cudaDriver();
  const fill = driver.func('int cuMemsetD32Async(uint64_t, uint32_t, size_t, uintptr_t)');
  const copy = driver.func('int cuMemcpyAsync(uint64_t, uint64_t, size_t, uintptr_t)');
  const synchronize = driver.func('int cuStreamSynchronize(uintptr_t)');
  // The driver keeps the first form, for contexts of old programs, under the plain name.
  const second = (name: string, params: string): ReturnType<typeof driver.func> => {
    try {
      return driver.func(`int ${name}_v2(${params})`);
    } catch {
      return driver.func(`int ${name}(${params})`);
    }
  };
  const push = second('cuCtxPushCurrent', 'uintptr_t');
  const pop = second('cuCtxPopCurrent', '_Out_ uintptr_t*');
  const get = driver.func('int cuCtxGetCurrent(_Out_ uintptr_t*)');
  return {
    fill: ({ stream }, address, word, count) => checked(fill(address, word, count, stream), 'cuMemsetD32Async'),
    copy: ({ stream }, to, from, bytes) => checked(copy(to, from, bytes, stream), 'cuMemcpyAsync'),
    within({ context }, fn) {
      checked(push(context), 'cuCtxPushCurrent');
      try {
        fn();
      } finally {
        checked(pop([0]), 'cuCtxPopCurrent');
      }
    },
    current() {
      const context = [0];
      checked(get(context), 'cuCtxGetCurrent');
      return BigInt(context[0] as number);
    },
    synchronize: ({ stream }) => checked(synchronize(stream), 'cuStreamSynchronize'),
  };
}

function onHost(): Foreign {
  const libc = koffi.load('libc.so.6');
  const fill = libc.func('void *wmemset(uintptr_t, int, size_t)');
  const copy = libc.func('void *memcpy(uintptr_t, uintptr_t, size_t)');
  return {
    fill: (_raw, address, word, count) => void fill(address, word, count),
    copy: (_raw, to, from, bytes) => void copy(to, from, bytes),
    within: (_raw, fn) => fn(),
    current: () => 0n,
    synchronize: () => undefined,
  };
}

export function foreignOf(device: Device): Foreign {
  return device.info.backend === 'cuda' ? onCuda() : onHost();
}

export interface Cublas {
  create(): bigint;
  destroy(handle: bigint): void;
  /** c += a b, for square matrices by columns. */
  addProduct(handle: bigint, stream: bigint, n: number, a: bigint, b: bigint, c: bigint): void;
}

/** cuBLAS, or why it is not here. */
export function loadCublas(): Cublas | string {
  let library: ReturnType<typeof koffi.load> | undefined;
  for (const name of ['libcublas.so.13', 'libcublas.so.12', 'libcublas.so']) {
    try {
      library ??= koffi.load(name);
    } catch {
      // The next version may be there.
    }
  }
  if (library === undefined) return 'libcublas.so is not on this machine';
  const create = library.func('int cublasCreate_v2(_Out_ uintptr_t*)');
  const destroy = library.func('int cublasDestroy_v2(uintptr_t)');
  const setStream = library.func('int cublasSetStream_v2(uintptr_t, uintptr_t)');
  const gemm = library.func(
    'int cublasSgemm_v2(uintptr_t, int, int, int, int, int, float*, uintptr_t, int, uintptr_t, int, float*, uintptr_t, int)',
  );
  return {
    create() {
      const handle = [0];
      checked(create(handle), 'cublasCreate');
      return BigInt(handle[0] as number);
    },
    destroy: (handle) => checked(destroy(handle), 'cublasDestroy'),
    addProduct(handle, stream, n, a, b, c) {
      checked(setStream(handle, stream), 'cublasSetStream');
      checked(gemm(handle, 0, 0, n, n, n, [1], a, n, b, n, [1], c, n), 'cublasSgemm');
    },
  };
}
