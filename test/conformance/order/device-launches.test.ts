// Chapter 4, CUDA C++ kernels that launch kernels.
import { describe, expect } from 'vitest';
import { CompileError, cudaKernel, cudaModule, type DeviceArray, f64, i32, inout, LaunchError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

/** A GPU has 24 levels of kernels that launch kernels. */
const GPU_DEPTH = 20;

/** All are compiled at once. */
const module = cudaModule(`struct Range {
  int from, to;
  double by;
};
namespace parts {
__global__ void add(int* x, Range range) {
  int i = range.from + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < range.to) x[i] += (int)range.by;
}
}
template <class T, int BY>
__global__ void scale(T* x, long long n) {
  long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= BY;
}
template <class T>
__global__ void negate(T* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = -x[i];
}
// Threads that wait for each other, with dynamic shared memory.
__global__ void __launch_bounds__(64) reverse(int* x, int n) {
  extern __shared__ int part[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  int from = __shfl_xor_sync(0xffffffffu, part[threadIdx.x], 31);
  if (i < n) x[i] = from;
}
#define SIZE(n) ((n) + 63) / 64, 64
extern "C" __global__ void all_kinds(int* x, int n, double by) {
  x[0] = 100;  // Seen by what is launched behind it.
  dim3 grid((n + 63) / 64);
  parts::add<<<grid, 64>>>(x, Range{0, n, by});
  scale<int, 3><<<grid, dim3(64)>>>(x, n);
  negate<<<SIZE(n), 0, 0>>>(x, n);
  reverse<<<(n + 63) >> 6, 64, 64 * sizeof(int)>>>(x, n);
}
// Appends its number to a list, after a delay in which other launches could overtake it.
__global__ void note(int* list, int number) {
  int here = list[0];
  for (volatile int i = 0; i < 2000; i = i + 1) {}
  list[0] = here + 1;
  list[1 + here] = number;
}
extern "C" __global__ void on_null(int* lists, int room) {
  // The threads of a block take turns, so their order is known.
  for (int turn = 0; turn < (int)blockDim.x; ++turn) {
    if ((int)threadIdx.x == turn) note<<<1, 1>>>(lists + room * blockIdx.x, turn);
    __syncthreads();
  }
}
extern "C" __global__ void on_own(int* lists, int room, int count, int* bad) {
  cudaStream_t one, two;
  if (cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking) != cudaSuccess) ++*bad;
  if (cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking) != cudaSuccess) ++*bad;
  for (int i = 0; i < count; ++i) {
    note<<<1, 1, 0, one>>>(lists, i);
    note<<<1, 1, 0, two>>>(lists + room, 2 * i);
  }
  if (cudaStreamDestroy(one) != cudaSuccess) ++*bad;
  if (cudaStreamDestroy(two) != cudaSuccess) ++*bad;
  if (cudaGetLastError() != cudaSuccess) ++*bad;
}
__global__ void branch(int* list, int number) {
  note<<<1, 1>>>(list, number);
  note<<<1, 1, 0, cudaStreamTailLaunch>>>(list, number + 1);
}
extern "C" __global__ void tails(int* list) {
  branch<<<1, 1, 0, cudaStreamTailLaunch>>>(list, 30);
  note<<<1, 1, 0, cudaStreamTailLaunch>>>(list, 40);
  branch<<<1, 1>>>(list, 10);
  note<<<1, 1>>>(list, 20);
}
extern "C" __global__ void rounds(int* x, int left) {
  *x = *x * 3 + left;
  if (left > 1) rounds<<<1, 1, 0, cudaStreamTailLaunch>>>(x, left - 1);
}
extern "C" __global__ void free_launches(int* sums, int depth) {
  atomicAdd(&sums[depth], 1);
  if (depth > 0) free_launches<<<2, 3, 0, cudaStreamFireAndForget>>>(sums, depth - 1);
}
__global__ void mark(int* x) { if (threadIdx.x == 0) x[0] = 1; }
extern "C" __global__ void refused(int* x, int threads, int isAsking) {
  if (threadIdx.x != 5) return;
  mark<<<1, threads>>>(x);
  if (isAsking) {
    x[1] = cudaPeekAtLastError();
    x[2] = cudaGetLastError() == cudaErrorInvalidConfiguration;
    x[3] = cudaGetLastError();
  }
  mark<<<1, 32>>>(x + 4);
}`);
const allKinds = module.kernel('all_kinds', { x: inout(i32), n: i32, by: f64 });
const onNull = module.kernel('on_null', { lists: inout(i32), room: i32 });
const onOwn = module.kernel('on_own', { lists: inout(i32), room: i32, count: i32, bad: inout(i32) });
const tails = module.kernel('tails', { list: inout(i32) });
const rounds = module.kernel('rounds', { x: inout(i32), left: i32 });
const free = module.kernel('free_launches', { sums: inout(i32), depth: i32 });
const refused = module.kernel('refused', { x: inout(i32), threads: i32, isAsking: i32 });

/** What CUDA leaves undefined, limits otherwise, or loses a device by. */
const moduleOfCpu = cudaModule(`__global__ void increment(int* x) { atomicAdd(x, 1); }
extern "C" __global__ void flood(int* x, int count) {
  for (int i = 0; i < count; ++i) increment<<<1, 1, 0, cudaStreamFireAndForget>>>(x);
}
__global__ void child(int* x, int bad) {
  assert((int)threadIdx.x != bad);
  x[threadIdx.x] = 1;
}
extern "C" __global__ void asserting(int* x, int bad) { child<<<1, 32>>>(x, bad); }
struct Inner { short pad; int* at; };
struct Outer { int n; Inner inner[2]; };
struct __attribute__((packed, aligned(4))) Tight { int n; const int* at; };
__global__ void read(int* x, const int* from) { x[0] += from[0]; }
__global__ void readOuter(int* x, Outer o) { x[0] += o.inner[1].at[0]; }
__global__ void readTight(int* x, Tight o) { x[0] += o.at[0]; }
__global__ void readAddress(int* x, unsigned long long from) { x[0] += *(int*)from; }
template <class T> __global__ void readAny(T from, int* x) { x[0] += *from; }
__device__ int global_one;
__constant__ int constant_one = 1;
extern "C" __global__ void passing(int* x, int how) {
  __shared__ int one[64];
  extern __shared__ int dynamic[];
  int mine[4] = {1, 1, 1, 1};
  one[threadIdx.x] = dynamic[threadIdx.x] = global_one = 1;
  __syncthreads();
  if (threadIdx.x != 3) return;
  int* heap = (int*)malloc(4);
  *heap = 1;
  Outer outer = {32765, {{1, x + 1}, {1, x + 1}}};
  switch (how) {
    case 0: return read<<<1, 1>>>(x, x + 1);
    case 1: return read<<<1, 1>>>(x, &global_one);
    case 2: return read<<<1, 1>>>(x, &constant_one);
    case 3: return read<<<1, 1>>>(x, heap);
    case 4: return readOuter<<<1, 1>>>(x, outer);
    case 5: return read<<<1, 1>>>(x, one);
    case 6: return read<<<1, 1, 0, cudaStreamTailLaunch>>>(x, &one[5] + threadIdx.x);
    case 7: return read<<<1, 1>>>(x, dynamic + 2);
    case 8: return readAddress<<<1, 1, 0, cudaStreamFireAndForget>>>(x, (unsigned long long)&one[2]);
    case 9: outer.inner[1].at = one + 1; return readOuter<<<1, 1>>>(x, outer);
    case 10: return read<<<1, 1>>>(x, mine);
    case 11: { Tight tight = {1, mine + 1}; readTight<<<1, 1>>>(x, tight); cudaGetLastError(); return; }
    case 12: return readAny<<<1, 1>>>((const int*)&mine[1], x);
  }
}`);
const flood = moduleOfCpu.kernel('flood', { x: inout(i32), count: i32 });
const asserting = moduleOfCpu.kernel('asserting', { x: inout(i32), bad: i32 });
const passing = moduleOfCpu.kernel('passing', { x: inout(i32), how: i32 });

defineChapter((target) => {
  describe('4 kernels: launches from kernels', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const isCpu = target.spec === 'cpu';

    rule('S460', 'kernels launch kernels of every kind, in order', async () => {
      const { device } = chapter;
      const n = 1000;
      using x = device.from(Int32Array.from({ length: n }, (_, i) => i));
      device.stream.launch(allKinds, { grid: 1, block: 1 }, { x, n, by: 7.5 });
      const before = Int32Array.from({ length: 1024 }, (_, i) => (i < n ? -3 * ((i === 0 ? 100 : i) + 7) : 0));
      const expected = Int32Array.from({ length: n }, (_, i) => before[i ^ 31]!);
      expect(await x.read()).toEqual(expected);
    });

    rule('S460', 'a launch completes when all its child launches have completed', async () => {
      const { device } = chapter;
      using sums = device.zeros(12, 'i32');
      const depth = 4;
      await device.stream.launch(free, { grid: 2, block: 3 }, { sums, depth }).done;
      const values = await sums.read();
      expect(values.slice(0, depth + 1)).toEqual(Int32Array.of(6 ** 5, 6 ** 4, 6 ** 3, 6 ** 2, 6));
    });

    rule('S461', 'launches of a block on the null stream run in their order', async () => {
      const { device } = chapter;
      const [blocks, threads, room] = [40, 12, 16];
      using lists = device.zeros(blocks * room, 'i32');
      device.stream.launch(onNull, { grid: blocks, block: threads }, { lists, room });
      const one = [threads, ...Array.from({ length: threads }, (_, i) => i), 0, 0, 0];
      expect([...(await lists.read())]).toEqual(Array.from({ length: blocks }, () => one).flat());
    });

    rule('S461', 'launches on a stream that a kernel made run in their order', async () => {
      const { device } = chapter;
      const [count, room] = [50, 64];
      using lists = device.zeros(2 * room, 'i32');
      using bad = device.zeros(1, 'i32');
      device.stream.launch(onOwn, { grid: 1, block: 1 }, { lists, room, count, bad });
      const values = await lists.read();
      expect(await bad.read()).toEqual(Int32Array.of(0));
      const numbers = Array.from({ length: count }, (_, i) => i);
      expect(values.slice(0, count + 1)).toEqual(Int32Array.of(count, ...numbers));
      expect(values.slice(room, room + count + 1)).toEqual(Int32Array.of(count, ...numbers.map((i) => 2 * i)));
    });

    rule(
      'S461',
      'a pointer to shared or local memory cannot be an argument, wherever it is in the argument; other pointers can',
      async () => {
        const { device } = chapter;
        const from = (how: number): DeviceArray<'i32'> => device.from(Int32Array.of(how, 1));
        const launch = (x: DeviceArray<'i32'>, how: number): Promise<unknown> =>
          device.stream.launch(passing, { grid: 1, block: 32, sharedBytes: 256 }, { x, how }).done;
        for (let how = 0; how < 5; how++) {
          using x = from(how);
          await launch(x, how);
          expect(await x.read(), String(how)).toEqual(Int32Array.of(how + 1, 1));
        }
        for (let how = 5; how < 13; how++) {
          using x = from(how);
          const error = await rejectionOf(launch(x, how));
          expect(error, String(how)).toBeInstanceOf(LaunchError);
          const memory = how < 10 ? 'shared memory of the launching block' : 'local memory of the launching thread';
          expect(error.message).toMatch(/^A launch from kernel passing .* was refused in thread \(3, 0, 0\) of block \(0, 0, 0\): /);
          expect(error.message).toContain(`argument ${how === 12 ? 1 : 2} points into ${memory}`);
        }
      },
      { unless: isCpu ? false : 'CUDA leaves such a launch undefined' },
    );

    rule('S462', 'tail launches run one after the other, after their grid and its other child launches', async () => {
      const { device } = chapter;
      using list = device.zeros(8, 'i32');
      device.stream.launch(tails, { grid: 1, block: 1 }, { list });
      const values = [...(await list.read())];
      expect(values).toEqual([6, 10, 11, 20, 30, 31, 40, 0]);
    });

    rule('S462', 'a kernel launches itself as a tail again and again', async () => {
      const { device } = chapter;
      const left = isCpu ? 100_000 : GPU_DEPTH;
      using x = device.zeros(1, 'i32');
      device.stream.launch(rounds, { grid: 1, block: 1 }, { x, left });
      let expected = 0;
      for (let i = left; i > 0; i--) expected = (Math.imul(expected, 3) + i) | 0;
      expect(await x.read()).toEqual(Int32Array.of(expected));
    });

    rule('S463', 'a refused launch is reported to the thread that calls cudaGetLastError, and not to the host', async () => {
      const { device } = chapter;
      using x = device.zeros(5, 'i32');
      await device.stream.launch(refused, { grid: 1, block: 32 }, { x, threads: 2048, isAsking: 1 }).done;
      expect([...(await x.read())]).toEqual([0, 9, 1, 0, 1]);
      await device.stream.launch(refused, { grid: 1, block: 32 }, { x, threads: 0, isAsking: 1 }).done;
      expect([...(await x.read())]).toEqual([0, 9, 1, 0, 1]);
    });

    rule(
      'S463',
      "a refused launch that no thread asks about rejects the host's launch, with value and limit",
      async () => {
        const { device } = chapter;
        using x = device.zeros(5, 'i32');
        const error = await rejectionOf(device.stream.launch(refused, { grid: 1, block: 32 }, { x, threads: 2048, isAsking: 0 }).done);
        expect(error).toBeInstanceOf(LaunchError);
        expect(error.message).toMatch(/A launch from kernel refused .* was refused in thread \(5, 0, 0\) of block \(0, 0, 0\): /);
        expect(error.message).toContain('the threads of a block (2048) exceed the limit of the device (1024)');
        using y = device.zeros(5, 'i32');
        await device.stream.launch(refused, { grid: 1, block: 32 }, { x: y, threads: 32, isAsking: 0 }).done;
        expect([...(await y.read())]).toEqual([1, 0, 0, 0, 1]);
      },
      { unless: isCpu ? false : 'CUDA tells of it only the thread that asks' },
    );

    rule(
      'S463',
      'launches beyond the pending limit are refused, and the accepted ones run',
      async () => {
        const { device } = chapter;
        using x = device.zeros(1, 'i32');
        await device.stream.launch(flood, { grid: 1, block: 1 }, { x, count: 32_768 }).done;
        expect(await x.read()).toEqual(Int32Array.of(32_768));
        using y = device.zeros(1, 'i32');
        const error = await rejectionOf(device.stream.launch(flood, { grid: 1, block: 1 }, { x: y, count: 33_000 }).done);
        expect(error).toBeInstanceOf(LaunchError);
        expect(error.message).toContain('the launches that are pending (32769) exceed the limit of the device (32768)');
        // With many blocks, launches of earlier blocks run before those of later ones.
        using z = device.zeros(1, 'i32');
        await device.stream.launch(flood, { grid: 64, block: 32 }, { x: z, count: 100 }).done;
        expect(await z.read()).toEqual(Int32Array.of(64 * 32 * 100));
      },
      { unless: isCpu ? false : 'how many launches may be pending is the driver’s to say' },
    );

    rule(
      'S464',
      "a failed assertion in a child kernel rejects the host's launch",
      async () => {
        const { device } = chapter;
        using x = device.zeros(32, 'i32');
        const error = await rejectionOf(device.stream.launch(asserting, { grid: 1, block: 1 }, { x, bad: 7 }).done);
        expect(error).toMatchObject({ code: 'ERR_MILLRACE_ASSERT' });
        expect(error.message).toContain('failed in thread (7, 0, 0) of block (0, 0, 0)');
        using y = device.zeros(32, 'i32');
        await device.stream.launch(asserting, { grid: 1, block: 1 }, { x: y, bad: -1 }).done;
        expect(await y.read()).toEqual(new Int32Array(32).fill(1));
      },
      { unless: isCpu ? false : 'a failed assertion costs a CUDA device its context' },
    );

    rule('S465', 'cudaDeviceSynchronize in a kernel is refused by name', async () => {
      const text = `__global__ void child() {}
extern "C" __global__ void waits_for_child() {
  child<<<1, 1>>>();
  cudaDeviceSynchronize();
}`;
      const error = await rejectionOf(chapter.device.compile(cudaKernel('waits_for_child', {}, text)));
      expect(error).toBeInstanceOf(CompileError);
      expect(error.message).toMatch(/^K706: .*cudaDeviceSynchronize\(\)/);
    });

    rule('S465', 'a source with launches is refused with { deviceRuntime: false }', async () => {
      const text = `__global__ void child() {}
extern "C" __global__ void launches_child() { child<<<1, 1>>>(); }`;
      const error = await rejectionOf(chapter.device.compile(cudaKernel('launches_child', {}, text, { deviceRuntime: false })));
      expect(error).toBeInstanceOf(CompileError);
    });
  });
});
