// More than 400 lines: a list of short steps.
// A program that uses everything that two devices have, in steps that do not depend on each other. Each step checks its numbers.
import {
  cudaKernel,
  cudaModule,
  type Device,
  type DeviceArray,
  elapsed,
  f32,
  type Graph,
  i32,
  inout,
  input,
  kernel,
  output,
  type Recorder,
  type Stream,
  surface,
  texture,
  u32,
} from 'millrace';
import { add, matmul, sum } from 'millrace/ops';

const ONE = { grid: 1, block: 1 };
const mix = cudaKernel(
  'mix_all',
  { x: inout(u32), k: u32 },
  'extern "C" __global__ void mix_all(unsigned* x, unsigned k) { x[0] = x[0] * 3u + k; }',
);
const countDown = cudaKernel(
  'count_down_all',
  { n: inout(i32), x: inout(i32) },
  'extern "C" __global__ void count_down_all(int* n, int* x) { n[0] -= 1; x[0] += 2; }',
);
const launching = cudaKernel(
  'launching_all',
  { x: inout(i32) },
  `__global__ void inner(int* x) { x[0] += 4; }
   extern "C" __global__ void launching_all(int* x) { inner<<<1, 1>>>(x); }`,
);
const scale = kernel('scale_all', { x: input(f32), y: output(f32), by: f32 }, ({ x, y, by }, { i }) => {
  y[i] = x[i]! * by;
});
const meet = kernel('meet_all', { x: inout(i32) }, ({ x }, t) => {
  x[t.i]! += 1;
  t.gridSync();
  if (t.i === 0) x[0] = x[1]! + x[2]!;
});
const show = cudaKernel(
  'show_all',
  { image: texture, out: output(f32), n: i32 },
  `extern "C" __global__ void show_all(cudaTextureObject_t image, float* out, int n) {
     int i = threadIdx.x;
     if (i < n) out[i] = tex1Dfetch<float>(image, i);
   }`,
);
const paint = cudaKernel(
  'paint_all',
  { canvas: surface, n: i32 },
  `extern "C" __global__ void paint_all(cudaSurfaceObject_t canvas, int n) {
     int i = threadIdx.x;
     if (i < n) surf1Dwrite((float)(7 * i), canvas, i * 4);
   }`,
);
const counters = cudaModule(`__device__ int total_all = 5;
  extern "C" __global__ void bump_all(int* out) { total_all += 1; out[0] = total_all; }`);
const bump = counters.kernel('bump_all', { out: inout(i32) });

export interface Place {
  readonly device: Device;
  readonly peer: Device;
  /** Of the device. */
  readonly stream: Stream;
}

function same(found: unknown, expected: unknown): void {
  const plain = (value: unknown): unknown => (ArrayBuffer.isView(value) ? [...(value as Int32Array)] : value);
  const [a, b] = [found, expected].map((each) => JSON.stringify(plain(each), (_, v: unknown) => (typeof v === 'bigint' ? `${v}n` : v)));
  if (a !== b) throw new Error(`WRONG: ${a}, not ${b}`);
}

/** Steps that the CPU device refuses. */
export const ONLY_ON_CUDA: readonly string[] = ['handles for other processes', 'raw handles'];
/** Steps of the CPU device, whose compiler is that of users. */
export const ONLY_ON_CPU: readonly string[] = ['a kernel that is new'];
/** By name. What a step makes, it closes, also if it fails. */
export const STEPS: Readonly<Record<string, (place: Place) => Promise<void>>> = {
  async fills({ device, stream }) {
    using a = device.zeros(5);
    using b = device.full(5, 7, 'u8');
    using c = device.full([2, 3], 3, 'i16');
    using d = device.full(4, 9n, 'i64');
    using e = device.ones([4, 6]);
    stream.fill(e.subarray(1, 3), 2);
    same([...(await a.read()), ...(await b.read()), ...(await c.read())], [0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 3, 3, 3, 3, 3, 3]);
    same(await d.read(), [9n, 9n, 9n, 9n]);
    same(
      (await e.read()).reduce((x, y) => x + y),
      26,
    );
  },
  async copies({ device, stream }) {
    using x = device.empty(1000, 'i32');
    using y = device.empty(1000, 'i32');
    using p = device.pinned(1000, 'i32');
    const ints = Int32Array.from({ length: 1000 }, (_, n) => n);
    stream.copy(x, ints);
    stream.copy(y, x);
    await stream.copy(p, y).done;
    same(p.data[999], 999);
    const back = new Int32Array(1000);
    await stream.copy(back, y).done;
    same(back, ints);
  },
  async 'a large copy'({ device, stream }) {
    // 5 MiB: more than what is staged at once.
    const count = 5 << 18;
    const floats = new Float32Array(count).fill(2);
    using x = device.from(floats);
    using y = device.empty(count);
    stream.copy(y, x);
    const found = await y.read();
    same([found[0], found[count - 1]], [2, 2]);
  },
  async 'strided copies'({ device, stream }) {
    using x = device.from(
      Int32Array.from({ length: 24 }, (_, n) => n),
      { shape: [4, 6] },
    );
    using y = device.zeros([4, 3], 'i32');
    stream.copy(y, x.view(undefined, [1, 4]));
    same(await y.read(), [1, 2, 3, 7, 8, 9, 13, 14, 15, 19, 20, 21]);
  },
  async 'a batch of copies'({ device, stream }) {
    const pairs = Array.from({ length: 4 }, (_, n) => [device.zeros(8), new Float32Array(8).fill(n)] as const);
    try {
      await stream.copyBatch(pairs).done;
      for (const [n, [array]] of pairs.entries()) same((await array.read())[7], n);
    } finally {
      for (const [array] of pairs) array[Symbol.dispose]();
    }
  },
  async launches({ device, stream }) {
    using x = device.ones(64);
    using y = device.empty(64);
    using z = device.full(1, 1, 'u32');
    stream.launch(scale, 64, { x, y, by: 3 });
    for (let n = 0; n < 3; n++) stream.launch(mix, ONE, { x: z, k: n });
    same([(await y.read())[63], (await z.read())[0]], [3, 32]);
  },
  async 'a kernel that is new'({ device, stream }) {
    // No process has built it.
    const text = `extern "C" __global__ void new_all(unsigned* x) { x[0] = ${process.pid}u; /* ${performance.timeOrigin} */ }`;
    using x = device.zeros(1, 'u32');
    await stream.launch(cudaKernel('new_all', { x: inout(u32) }, text), ONE, { x }).done;
    same(await x.read(), [process.pid]);
  },
  async 'a cooperative launch'({ device, stream }) {
    using x = device.from(Int32Array.of(1, 2, 3, 4));
    await stream.launch(meet, { grid: 2, block: 2, cooperative: true }, { x }).done;
    same(await x.read(), [7, 3, 4, 5]);
  },
  async 'a kernel that launches'({ device, stream }) {
    using x = device.zeros(1, 'i32');
    await stream.launch(launching, ONE, { x }).done;
    same(await x.read(), [4]);
  },
  async 'a variable of a module'({ device, stream }) {
    using out = device.zeros(1, 'i32');
    const total = counters.global(device, 'total_all', 'i32', 1);
    stream.fill(total, 41);
    stream.launch(bump, ONE, { out });
    same([(await out.read())[0], (await total.read())[0]], [42, 42]);
  },
  async textures({ device, stream }) {
    using squares = device.from(Float32Array.from({ length: 8 }, (_, n) => n * n));
    using image = device.createTexture({ array: squares });
    using out = device.empty(8);
    await stream.launch(show, { grid: 1, block: 8 }, { image, out, n: 8 }).done;
    same(await out.read(), [0, 1, 4, 9, 16, 25, 36, 49]);
  },
  async surfaces({ device, stream }) {
    using canvas = device.createTexture({ shape: 8, surface: true });
    using out = device.empty(8);
    stream.launch(paint, { grid: 1, block: 8 }, { canvas: canvas.surface, n: 8 });
    stream.copy(out, canvas);
    same(await out.read(), [0, 7, 14, 21, 28, 35, 42, 49]);
  },
  async 'events and two streams'({ device, stream }) {
    const other = device.createStream({ priority: -1 });
    try {
      using x = stream.zeros(1, 'u32');
      stream.launch(mix, ONE, { x, k: 2 });
      const begin = stream.record({ timing: true });
      other.waitEvent(begin);
      other.launch(mix, ONE, { x, k: 5 });
      const end = other.record({ timing: true });
      stream.waitStream(other);
      stream.launch(mix, ONE, { x, k: 1 });
      await end.done;
      same([(await elapsed(begin, end)) >= 0, (await x.read())[0]], [true, 34]);
    } finally {
      await other.close();
    }
  },
  async 'functions of the host'({ device, stream }) {
    using p = device.pinned(1, 'u32');
    using x = device.zeros(1, 'u32');
    let seen: number | undefined;
    stream.fill(x, 6);
    stream.copy(p, x);
    stream.host(() => (seen = p.data[0]));
    stream.hold(async () => void (p.data[0] = 8), { timeoutMs: 5000 });
    stream.copy(x, p);
    await stream.synchronize();
    same([seen, (await x.read())[0]], [6, 8]);
  },
  async 'foreign work'({ device, stream }) {
    using x = device.full(2, 3, 'i32');
    let pointer: bigint | undefined;
    await stream.external({ reads: { x } }, (raw) => void (pointer = raw.pointers.x)).done;
    same([typeof pointer, (await x.read())[1]], ['bigint', 3]);
  },
  async graphs({ device, stream }) {
    using x = device.full(1, 1, 'u32');
    using y = device.zeros(4, 'u32');
    const side = device.createStream();
    const graph = stream.capture({ k: u32 }, (s, { k }) => {
      s.launch(mix, ONE, { x, k });
      s.fill(y, 7);
      side.waitStream(stream);
      side.copy(y.subarray(0, 1), x);
      stream.waitStream(side);
      s.copy(y.subarray(2, 3), y.subarray(0, 1));
    });
    try {
      await graph.upload().done;
      stream.launch(graph, { k: 4 });
      same(await y.read(), [7, 7, 7, 7]);
    } finally {
      await graph.close();
      await side.close();
    }
  },
  async 'graphs that change'({ device, stream }) {
    using x = device.full(1, 1, 'u32');
    using y = device.full(1, 2, 'u32');
    using z = device.zeros(1, 'u32');
    const body = (target: DeviceArray<'u32'>, value: number) => (s: Recorder) => {
      s.fill(z, value);
      s.launch(mix, ONE, { x: target, k: 1 });
      s.copy(z, target);
    };
    const graph = stream.capture(body(x, 3));
    try {
      stream.launch(graph);
      graph.update(body(y, 4));
      stream.launch(graph);
      same([(await x.read())[0], (await y.read())[0], (await z.read())[0]], [4, 7, 7]);
    } finally {
      await graph.close();
    }
  },
  async 'graphs whose fills and copies change'({ device, stream }) {
    using x = device.zeros(64, 'i32');
    using y = device.zeros(64, 'i32');
    using z = device.zeros(64, 'i32');
    const body =
      (filled: DeviceArray<'i32'>, value: number, copied: DeviceArray<'i32'>) =>
      (s: Recorder): void => {
        s.fill(filled, value);
        s.copy(copied, filled);
      };
    const graph = stream.capture(body(x, 3, y));
    try {
      stream.launch(graph);
      graph.update(body(y, 4, z));
      stream.launch(graph);
      same([(await x.read())[0], (await y.read())[63], (await z.read())[1]], [3, 4, 4]);
    } finally {
      await graph.close();
    }
  },
  async 'graphs with slots'({ device, stream }) {
    using a = device.zeros(64, 'i32');
    using b = device.zeros(64, 'i32');
    using c = device.full(1, 1, 'u32');
    const graph = stream.capture({ x: inout(i32), y: output(i32), z: inout(u32), k: i32 }, (s, { x, y, z, k }) => {
      s.fill(x, k);
      s.copy(y, x, { count: 64 });
      s.launch(mix, ONE, { x: z, k: 2 });
    });
    try {
      stream.launch(graph, { x: a, y: b, z: c, k: 3 });
      stream.launch(graph, { x: b, y: a, z: c, k: 4 });
      same([(await a.read())[63], (await b.read())[0], (await c.read())[0]], [4, 4, 17]);
    } finally {
      await graph.close();
    }
  },
  async 'products and cooperative launches in graphs'({ device, stream }) {
    using x = device.from(Int32Array.of(1, 2, 3, 4));
    using a = device.from(Float32Array.of(1, 2, 3, 4), { shape: [2, 2] });
    using b = device.empty([2, 2]);
    const graph = stream.capture((s) => {
      s.launch(meet, { grid: 2, block: 2, cooperative: true }, { x });
      matmul(a, a, { out: b, stream });
    });
    try {
      await stream.launch(graph).done;
      same([...(await x.read()), ...(await b.read())], [7, 3, 4, 5, 7, 10, 15, 22]);
    } finally {
      await graph.close();
    }
  },
  async 'buffers that are handed over'({ device, stream }) {
    using x = device.empty(1 << 18);
    const shared = new Float32Array(new SharedArrayBuffer(1 << 20)).fill(5);
    stream.copy(x, shared);
    same((await x.read())[99], 5);
    const floats = new Float32Array(1 << 18).fill(6);
    stream.copy(x, floats, { transfer: true });
    same([(await x.read())[99], floats.length], [6, 0]);
  },
  async 'memory, events and children in graphs'({ device, stream }) {
    using x = device.full(1, 1, 'u32');
    const child = stream.capture((s) => void s.launch(mix, ONE, { x, k: 1 }));
    let graph: Graph | undefined;
    try {
      const event = device.createEvent({ timing: true });
      graph = stream.capture((s) => {
        const t = s.full(1, 5, 'u32');
        s.launch(child);
        s.record(event);
        s.launch(mix, ONE, { x: t, k: 0 });
        s.copy(x, t);
        t[Symbol.dispose]();
      });
      await stream.launch(graph).done;
      same(await x.read(), [15]);
      event[Symbol.dispose]();
    } finally {
      await graph?.close();
      await child.close();
    }
  },
  async conditions({ device, stream }) {
    using n = device.full(1, 3, 'i32');
    using x = device.zeros(1, 'i32');
    const graph = stream.capture((s) => void s.captureWhile(n, (body) => void body.launch(countDown, ONE, { n, x })));
    try {
      await stream.launch(graph).done;
      same([(await n.read())[0], (await x.read())[0]], [0, 6]);
    } finally {
      await graph.close();
    }
  },
  async 'other devices'({ device, stream, peer }) {
    using x = device.full(4, 6, 'i32');
    using y = peer.zeros(4, 'i32');
    using z = device.zeros(4, 'i32');
    peer.defaultStream.copy(y, x);
    stream.copy(z, y);
    same([...(await y.read()), ...(await z.read())], [6, 6, 6, 6, 6, 6, 6, 6]);
  },
  async 'arrays of a granted device'({ device, stream, peer }) {
    using x = device.full(1, 2, 'u32');
    using y = peer.full(1, 5, 'u32');
    await device.peers.grant(peer, 'memory');
    await device.peers.grant(peer, 'pool');
    try {
      stream.launch(mix, ONE, { x, k: 1 });
      stream.copy(x, y);
      same(await x.read(), [5]);
    } finally {
      await device.peers.revoke(peer, 'pool');
      await device.peers.revoke(peer, 'memory');
    }
  },
  async 'handles for other processes'({ device }) {
    const event = device.createEvent({ interprocess: true });
    using x = device.interprocess(4, 'i32');
    try {
      device.defaultStream.fill(x, 3);
      device.defaultStream.record(event);
      same([(await event.ipcHandle()).length, (await x.ipcHandle()).length, (await x.read())[3]], [64, 64, 3]);
    } finally {
      event[Symbol.dispose]();
    }
  },
  async 'raw handles'({ device, stream }) {
    using y = stream.zeros(2);
    await y.read();
    const wrapped = device.wrapStream(stream.nativeHandle);
    try {
      using x = wrapped.full(2, 4, 'i32');
      same(await x.read(), [4, 4]);
    } finally {
      await wrapped.close();
    }
  },
  async operations({ device }) {
    using a = device.from(Float32Array.of(1, 2, 3, 4), { shape: [2, 2] });
    using b = add(a, a);
    using c = matmul(a, b);
    using s = sum(c);
    same([...(await b.read()), ...(await c.read()), await s.item()], [2, 4, 6, 8, 14, 20, 30, 44, 108]);
  },
  async memory({ device }) {
    const { totalBytes } = await device.pool.stats();
    await device.pool.trim();
    const [x, y] = [device.zeros(1 << 18), device.zeros(1 << 18)];
    x[Symbol.dispose]();
    y[Symbol.dispose]();
    await device.synchronize();
    same(totalBytes > 0, true);
  },
  async 'a stream that closes'({ device }) {
    const made = device.createStream();
    using x = made.full(1, 4, 'u32');
    made.launch(mix, ONE, { x, k: 1 });
    await made.close();
    same(await x.read(), [13]);
  },
};
