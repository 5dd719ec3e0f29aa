// Declared memory, barriers, atomics, print and assert, as IR.
import { expect, test } from 'vitest';
import { func } from '../../../src/compiler/definitions/func.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { bool, f32, f64, i32, u32 } from '../../../src/core/elements/dtype.js';
import { inout, input, output } from '../../../src/core/kernels/kernel.js';
import { irOf, irText } from './ir-text.js';
import { complaint, withoutPositions, withText } from './support.js';

withoutPositions();

const params = { x: inout(f32), n: inout(i32), size: i32 } as const;
function refused(text: string): string {
  return complaint(() => kernel('k', params, withText(text)));
}

test('shared memory of one to three dimensions is an array like any other', () => {
  const ir = irOf(
    { a: input(f32, 2), out: output(f32, 2) },
    ({ a, out }, { i, j, threadIdx, shared, syncthreads, TILE }) => {
      const tile = shared(f32, [TILE, TILE + 1]);
      const flags = shared('u8', 2 * TILE);
      const cube = shared(i32, [2, 3, 4]);
      tile[threadIdx.y]![threadIdx.x] = a[i]![j]!;
      flags[threadIdx.x] = 1;
      cube.set(0, 1, 2, flags[3]! + tile.shape[1]);
      syncthreads();
      const row = tile[threadIdx.x]!;
      out[i]![j] = row[threadIdx.y]! + row.length + flags.length + cube.at(0, 1, 2);
    },
    { TILE: 16 },
  );
  expect(irText(ir)).toMatchInlineSnapshot(`
    "shared tile #2: f32[16, 17]
    shared flags #3: u8[32]
    shared cube #4: i32[2, 3, 4]
    tile[threadIdx.y, threadIdx.x] = a[i, j]
    flags[threadIdx.x] = 1
    cube[0, 1, 2] = (flags[3] + 17)
    barrier block
    out[i, j] = (((tile[threadIdx.x, threadIdx.y] + 17:f32) + 32:f32) + f32(cube[0, 1, 2]))"
  `);
});

test('local memory belongs to a block of the source, shared memory to the body', () => {
  const ir = irOf(params, ({ x, size }, { i, local }) => {
    for (let round = 0; round < size; round++) {
      const seen = local(f32, [2, 2]);
      seen[0]![1] = x[i]!;
      x[i] = seen[0]![1]! + seen.shape[0];
    }
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "local seen #3: f32[2, 2]
    loop before (round < size)
      init let round: i32 = 0
      seen[0, 1] = x[i]
      x[i] = (seen[0, 1] + 2:f32)
      then round = (round + 1)"
  `);
});

test('a kernel that needs several passes declares its memory once', () => {
  const ir = irOf(params, ({ x }, { i, shared }) => {
    const tile = shared(f32, 8);
    let sum = 0;
    sum += tile[i]!;
    x[i] = sum;
  });
  expect(ir.arrays.map((array) => array.name)).toEqual(['tile']);
});

test('memory of one name in two blocks is two arrays', () => {
  const ir = irOf(params, ({ x, size }, { local }) => {
    if (size > 3) {
      const a = local(f32, 4);
      x[0] = a[0]!;
    } else {
      const a = local(f32, 8);
      x[0] = a[0]!;
    }
  });
  expect(ir.arrays).toMatchObject([
    { name: 'a', number: 3, extents: [4] },
    { name: 'a', number: 4, extents: [8] },
  ]);
});

test('element types come from the thread, from an import, or by name; minifiers may write let', () => {
  const texts = [
    '({ x }, { i, shared, f32: e }) => { let a = shared(e, 4); a[i] = x[i]; }',
    '({ x }, t) => { const a = t.shared(t.f32, 4); a[t.i] = x[t.i]; }',
    '({ x }, t) => { const a = t.shared("f32", 4); a[t.i] = x[t.i]; }',
    '({ x }, t) => { const a = (0, gpu.shared)(gpu.f32, 4); a[t.i] = x[t.i]; }',
    '({ x }, t) => { for (let a = t.shared(t.f32, 4), k = 0; k < 1; k++) a[t.i] = x[t.i]; }',
    '({ x: q }, { i: e, shared: r, f32: t }) => { const a = r(t, 4); a[e] = q[e]; }',
  ];
  for (const text of texts)
    expect(irText(irOf(params, withText(text, 'gpu'))), text).toMatch(/^shared a #3: f32\[4\]\n[^]*a\[i\] = x\[i\]/);
});

test('the global index is computed from the others', () => {
  const ir = irOf(params, ({ n }, { globalIdx }) => {
    n[globalIdx.x] = globalIdx.z;
  });
  expect(irText(ir)).toBe('n[((blockIdx.x * blockDim.x) + threadIdx.x)] = ((blockIdx.z * blockDim.z) + threadIdx.z)');
});

test('atomics', () => {
  const ir = irOf({ n: inout(i32), u: inout(u32, 2), x: inout(f32), d: inout(f64) }, ({ n, u, x, d }, t) => {
    const bins = t.shared(u32, 256);
    t.atomicAdd(n, t.i, 1);
    t.atomicAdd(x, t.i, 1);
    t.atomicAdd(d, t.i, x[0]!);
    t.atomicSub(n, t.i, 2);
    t.atomicMin(u[3]!, t.i, 2);
    t.atomicMax(bins, t.i, t.atomicExch(bins, 0, 7));
    t.atomicAnd(bins, 1, 0xffff_0000);
    t.atomicOr(n, 1, 1);
    t.atomicXor(n, 1, -1);
    x[0] = t.atomicExch(x, 1, 0.5);
    n[0] = t.atomicCAS(n, 1, 0, 5);
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "shared bins #4: u32[256]
    atomic add n[i](1)
    atomic add x[i](1:f32)
    atomic add d[i](f64(x[0]))
    atomic sub n[i](2)
    atomic min u[3, i](2:u32)
    atomic max bins[i](atomic exchange bins[0](7:u32))
    atomic and bins[1](4294901760:u32)
    atomic or n[1](1)
    atomic xor n[1](-1)
    x[0] = atomic exchange x[1](0.5:f32)
    n[0] = atomic cas n[1](0, 5)"
  `);
});

test('print joins its values with spaces, and templates without', () => {
  const ir = irOf({ x: inout(f32), flag: bool }, ({ x, flag }, { i, print }) => {
    print('x at', i, 'is', x[i]!, flag);
    print(`x[${i}] = ${x[i]!}%`, 1.5, true);
    print();
    print('50%\n"quoted"');
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "print "x at " i " is " x[i] " " flag
    print "x[" i "] = " x[i] "% 1.5 true"
    print 
    print "50%\\n\\"quoted\\"""
  `);
});

test('assert keeps the source of its condition', () => {
  const ir = irOf(params, ({ x, n }, { i, assert }) => {
    assert(x[i]! >= 0 && i < n.length);
  });
  expect(irText(ir)).toMatchInlineSnapshot(`"assert ((x[i] >= 0:f32) && (i < n.shape[0])) as "x[i] >= 0 && i < n.length""`);
});

test('K402 where memory is declared', () => {
  expect(refused('(p, t) => { if (p.size > 3) { const tile = t.shared(f32, 4); } }')).toMatchInlineSnapshot(`
    "K402: 'tile' is declared in an inner block, and shared memory belongs to the whole body.
      Move the declaration to the top of the body."
  `);
  expect(refused('(p, t) => { for (;;) { const tile = t.sharedDynamic(f32); } }')).toMatch(/^K402: 'tile' is declared in an inner block/);
  expect(refused('(p, t) => { t.shared(f32, 4)[0] = 1; }')).toMatchInlineSnapshot(`
    "K402: 'shared' is used outside of a declaration.
      Declare a name for it: const tile = shared(f32, 256);"
  `);
  expect(refused('(p, t) => { t.local(f32, 4); }')).toMatch(/^K402: 'local' is used outside of a declaration/);
  expect(complaint(() => func([f32], f32, withText('(v) => { const a = local(f32, 4); return v; }')))).toMatchInlineSnapshot(`
    "K402: 'local' is used in a helper.
      Only the body of a kernel can declare memory."
  `);
});

test('K403 sizes of memory', () => {
  expect(refused('({ size }, t) => { const tile = t.shared(f32, size); }')).toMatchInlineSnapshot(`
    "K403: The size of 'tile' (size) must be known when the kernel is made.
      Use numbers and { constants }. Shared memory whose size the launch gives is sharedDynamic(type)."
  `);
  for (const size of ['0', '-4', '2.5', '[4, 0]', '1e400']) {
    expect(refused(`(p, t) => { const tile = t.shared(f32, ${size}); }`), size).toMatch(
      /^K403: The size of 'tile' \(.*\) must be a whole number of at least 1\.$/,
    );
  }
  expect(refused('(p, t) => { let n = 4; const tile = t.local(f32, n); }')).toMatch(/^K403: .* must be known when the kernel is made/);
  expect(refused('(p, t) => { const tile = t.shared(f32, [2, 2, 2, 2]); }')).toBe("K403: 'tile' has 4 dimensions (1 to 3).");
  expect(refused('(p, t) => { const tile = t.shared(f32, []); }')).toBe("K403: 'tile' has 0 dimensions (1 to 3).");
  expect(refused('(p, t) => { const tile = t.shared(f32, [4, true]); }')).toMatch(/^K403/);
  expect(refused('(p, t) => { const tile = t.shared(f32, [4, ...p]); }')).toMatch(/^K403: .* must be a list of numbers/);
});

test('K404 how much memory there is', () => {
  const most = irOf(params, (_p, { shared }) => {
    const a = shared(f64, 6 * 1024 - 1);
    const b = shared(f32, 2);
    a[0] = b[0]!;
  });
  expect(most.arrays.length).toBe(2);
  expect(refused('(p, t) => { const a = t.shared(f64, 6144); const b = t.shared(t.u8, 1); }')).toMatchInlineSnapshot(`
    "K404: With 'b' the shared memory of a block is 49153 bytes (49152 at most).
      Use sharedDynamic(type), and pass its size at the launch: { grid, block, sharedBytes }."
  `);
  expect(refused('(p, t) => { const a = t.local(f32, [512, 257]); }')).toMatchInlineSnapshot(`
    "K404: With 'a' the local memory of a thread is 526336 bytes (524288 at most).
      Use an array of the launch."
  `);
  expect(refused('(p, t) => { const a = t.shared(f32, [1e9, 1e9, 1e9]); }')).toMatch(/^K404/);
});

test('K209 and K212 what memory and atomics take', () => {
  expect(refused('(p, t) => { const a = t.shared(16, 4); }')).toMatchInlineSnapshot(`
    "K209: 'shared' takes an element type, and '16' is not an element type of TypeScript kernels.
      The types are bool, i8, u8, i16, u16, f16, bf16, i32, u32, i64, u64, f32, f64."
  `);
  expect(refused('(p, t) => { const a = t.shared("f80", 4); }')).toMatch(/^K209: 'shared' takes an element type, and '"f80"' is not/);
  expect(refused('(p, t) => { const a = t.shared(f32); }')).toBe("K212: 'shared' takes 2 arguments, not 1.");
  expect(refused('(p, t) => { const a = t.sharedDynamic(f32, 4); }')).toBe("K212: 'sharedDynamic' takes 1 argument, not 2.");
  expect(refused('(p, t) => { const a = t.local(i32, 4); t.atomicAdd(a, 0, 1); }')).toMatchInlineSnapshot(`
    "K209: 'atomicAdd' does not work on local memory: 'a' belongs to one thread.
      Read it and assign it."
  `);
  expect(refused('({ x }, t) => { t.atomicSub(x, 0, 1); }')).toMatchInlineSnapshot(`
    "K209: 'atomicSub' does not work on f32.
      It works on i32, u32."
  `);
  expect(refused('({ x }, t) => { t.syncthreads(1); }')).toBe("K212: 'syncthreads' takes 0 arguments, not 1.");
});

test('statements and memory are not values', () => {
  expect(refused('({ x }, t) => { x[0] = t.syncthreads(); }')).toMatchInlineSnapshot(`
    "K301: 'syncthreads' is used as a value.
      Write it as a statement of its own."
  `);
  expect(refused('({ x }, t) => { const tile = t.shared(f32, 4); x[0] = tile; }')).toMatch(/^K210: 'tile' is an array of 1 dimension/);
  expect(refused('({ x }, t) => { const tile = t.shared(f32, 4); tile = x; }')).toMatch(/^K210: 'tile' is an array, not an element of one/);
  expect(refused('({ x }, t) => { x[0] = t.u8(3); }')).toMatchInlineSnapshot(`
    "K302: 'u8' is an element type and not a cast: registers hold no u8 values.
      Cast to i32, u32, f32 or f64."
  `);
  expect(refused('({ x }, t) => { t.assert(x[0]); }')).toMatch(/^K201: 'x\[0\]' is f32 where a condition is needed/);
  expect(refused('({ x }, t) => { x[0] = "a"; }')).toMatch(/^K301/);
  expect(complaint(() => func([f32], f32, withText('(v) => { syncthreads(); return v; }')))).toMatchInlineSnapshot(`
    "K302: 'syncthreads' is used in a helper.
      Only the body of a kernel can have barriers, print and assert."
  `);
});
