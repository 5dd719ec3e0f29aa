// A program for each code of a CompileError: `refused` has the error, `accepted` is the same work without it, and its launch where `x.length` threads
// are not what it needs. The names are those of `millrace`. The pages of the codes show both with the message that `refused` gives, and a test runs
// both, and the launches (test/site/compile-examples.test.ts).
//
// A build is an error of the device's compiler and not of the call: `onDevice` is compiled for a device, and `words` is what is done about it
// where no program shows the error on each machine.

/** A kernel of one parameter x: its body, in two lines. */
const body = (params, text, options = '') =>
  `kernel('k', { ${params} }, ({ ${params.replaceAll(/: [^,]+(?:, \d\))?/g, '')} }, { i }) => {\n  ${text}\n}${options});`;
const cuda = (text) => `cudaKernel('k', { x: inout(f32) }, \`\n  ${text}\n\`);`;
const global = (text, parameters = 'float* x') => `__global__ void k(${parameters}) { ${text} }`;
const X = 'x: inout(f32)';
const N = 'n: inout(i32)';

/** The program with its launch: `shape` is that of the threads, by default one for each element of the first array. */
export function launched([, text, shape]) {
  const [, start, name, params] = /^([^]*?)(?:cuda)?[kK]ernel\('(\w+)', \{ (.*?) \}, /.exec(text);
  const args = params.replaceAll(/(\w+): (\w+)(\([^)]*\))?/g, (_, arg, type, ofArray) => (ofArray === undefined ? `${arg}: 3` : arg));
  const threads = shape ?? `${args.split(', ')[0]}.${params.startsWith('p') ? 'shape[0]' : 'length'}`;
  return `${start}const ${name} = ${text.slice(start.length)}\ndevice.stream.launch(${name}, ${threads}, { ${args} });`;
}

export const COMPILE_EXAMPLES = {
  K001: [
    `const double = ({ x }, { i }) => { x[i] = x[i] * 2; };\nkernel('k', { ${X} }, double.bind(null));`,
    `const double = ({ x }, { i }) => { x[i] = x[i] * 2; };\nkernel('k', { ${X} }, double);`,
  ],
  K002: [
    `const methods = { 'double it'({ x }, { i }) { x[i] = x[i] * 2; } };\nkernel('k', { ${X} }, class { });`,
    `kernel('k', { ${X} }, ({ x }, { i }) => { x[i] = x[i] * 2; });`,
  ],
  K003: [`kernel('k', { ${X} }, async ({ x }, { i }) => { x[i] = 1; });`, `kernel('k', { ${X} }, ({ x }, { i }) => { x[i] = 1; });`],
  K004: [`kernel('k', { ${X} }, ({ x = 1 }, { i }) => { x[i] = 1; });`, `kernel('k', { ${X} }, ({ x }, { i }) => { x[i] = 1; });`],
  K005: [
    `cudaKernel('scale', { ${X} }, '__global__ void scales(float* x) { x[threadIdx.x] *= 2; }');`,
    `cudaKernel('scale', { ${X} }, '__global__ void scale(float* x) { x[threadIdx.x] *= 2; }');`,
    '{ grid: 1, block: x.length }',
  ],
  K006: [
    `const sum = Array(20_000).fill('x[i]').join(' + ');\nkernel('k', { ${X} }, new Function(\`return ({ x }, { i }) => { x[i] = \${sum}; }\`)());`,
    body(X, 'let sum = f32(0);\n  for (let j = 0; j < 20_000; j++) sum += x[i];\n  x[i] = sum;').replace('{ i }', '{ i, f32 }'),
  ],
  K101: [
    `const factor = 2;\n${body(X, 'x[i] = x[i] * factor;')}`,
    `const factor = 2;\n${body(X, 'x[i] = x[i] * factor;', ', { constants: { factor } }').replace('{ x }', '{ x, factor }').replace('({ x, factor }, { i })', '({ x }, { i, factor })')}`,
  ],
  K102: [
    `kernel('k', { ${X} }, ({ y }, { i }) => {\n  y[i] = 1;\n});`,
    `kernel('k', { y: inout(f32) }, ({ y }, { i }) => {\n  y[i] = 1;\n});`,
  ],
  // As a minifier leaves it: `values`, `result` and `i` have other names in the body.
  K103: [
    `kernel('k', { values: input(f32), result: output(f32) }, ({ values: t, result: n }, { i: e }) => { n[e] = clamp(t[e], 0, 1); });`,
    `kernel('k', { values: input(f32), result: output(f32) }, ({ values: t, result: n }, { i: e, clamp: c }) => { n[e] = c(t[e], 0, 1); });`,
  ],
  K104: [body(`${X}, n: i32`, 'n = n + 1;\n  x[i] = n;'), body(`${X}, n: i32`, 'let next = n + 1;\n  x[i] = next;')],
  K201: [body(X, 'x[i] = x[i] > 0;'), body(X, 'x[i] = x[i] > 0 ? 1 : 0;')],
  K203: [
    body(`${X}, n: input(i32)`, 'let s = 0;\n  s = n[i];\n  s = x[i];\n  x[i] = s;'),
    body(`${X}, n: input(i32)`, 'let s = f32(0);\n  s = f32(n[i]);\n  s = x[i];\n  x[i] = s;').replace('{ i }', '{ i, f32 }'),
  ],
  K204: [
    body(`${N}, u: input(u32)`, 'n[i] = n[i] + u[i];'),
    body(`${N}, u: input(u32)`, 'n[i] = n[i] + i32(u[i]);').replace('{ i }', '{ i, i32 }'),
  ],
  K205: [body(N, 'n[i] = n[i] / 2;'), body(N, 'n[i] = idiv(n[i], 2);').replace('{ i }', '{ i, idiv }')],
  K206: [body(N, 'n[i] = i * 0.5;'), body(N, 'n[i] = i32(i * 0.5);').replace('{ i }', '{ i, i32 }')],
  K207: [body(`${X}, d: input(f64)`, 'x[i] = d[i];'), body(`${X}, d: input(f64)`, 'x[i] = f32(d[i]);').replace('{ i }', '{ i, f32 }')],
  K208: [body(X, 'let v;\n  if (i > 0) v = x[i];\n  x[i] = v;'), body(X, 'let v = x[0];\n  if (i > 0) v = x[i];\n  x[i] = v;')],
  K209: [
    body('b: inout(u8)', 'atomicAdd(b, 0, 1);').replace('{ i }', '{ atomicAdd }'),
    body(N, 'atomicAdd(n, 0, 1);').replace('{ i }', '{ atomicAdd }'),
  ],
  K210: [body(`${X}, a: input(f32, 2)`, 'x[i] = a[i];'), body(`${X}, a: input(f32, 2)`, 'x[i] = a[i][0];')],
  K211: [body('x: input(f32)', 'x[i] = 1;'), body('x: output(f32)', 'x[i] = 1;')],
  K212: [
    body(X, 'x[i] = clamp(x[i], 1);').replace('{ i }', '{ i, clamp }'),
    body(X, 'x[i] = clamp(x[i], 0, 1);').replace('{ i }', '{ i, clamp }'),
  ],
  K213: [
    body('p: inout(f32, 2)', 'const v = vec3f(1, 2, 3);\n  p.set(i, v * 2);').replace('{ i }', '{ i, vec3f }'),
    body('p: inout(f32, 2)', 'const v = vec3f(1, 2, 3);\n  p.set(i, scale(v, 2));').replace('{ i }', '{ i, vec3f, scale }'),
  ],
  K301: [body(X, 'for (const v of x) x[i] = v;'), body(X, 'for (let j = 0; j < x.length; j++) x[i] = x[j];')],
  K302: [
    body(X, 'const half = (v) => { const h = v / 2; return h; };\n  x[i] = half(x[i]);'),
    `const half = func([f32], f32, (v) => { const h = v / 2; return h; });\n${body(X, 'x[i] = half(x[i]);', ', { functions: { half } }').replace('{ i }', '{ i, half }')}`,
  ],
  K303: [body(X, 'return x[i] * 2;'), body(X, 'x[i] = x[i] * 2;')],
  K401: [
    body(X, 'if (x[i] > 0) {\n    syncthreads();\n    x[i] = 1;\n  }').replace('{ i }', '{ i, syncthreads }'),
    body(X, 'const isPositive = i < x.length && x[i] > 0;\n  syncthreads();\n  if (isPositive) x[i] = 1;').replace(
      '{ i }',
      '{ i, syncthreads }',
    ),
    '{ grid: Math.ceil(x.length / 64), block: 64 }',
  ],
  K402: [
    body(X, 'if (i > 0) { const tile = shared(f32, 64); tile[threadIdx.x] = x[i]; }').replace('{ i }', '{ i, threadIdx, shared }'),
    body(X, 'const tile = shared(f32, 64);\n  if (i > 0) tile[threadIdx.x] = x[i];').replace('{ i }', '{ i, threadIdx, shared }'),
    '{ threads: x.length, block: 64 }',
  ],
  K403: [
    body(`${X}, size: i32`, 'const tile = shared(f32, size);\n  tile[threadIdx.x] = x[i];').replace('{ i }', '{ i, threadIdx, shared }'),
    body(X, 'const tile = sharedDynamic(f32);\n  tile[threadIdx.x] = x[i];').replace('{ i }', '{ i, threadIdx, sharedDynamic }'),
    '{ threads: x.length, block: 64, sharedBytes: 64 * 4 }',
  ],
  K404: [
    body(X, 'const tile = shared(f32, 20_000);\n  tile[threadIdx.x] = x[i];').replace('{ i }', '{ i, threadIdx, shared }'),
    body(X, 'const tile = sharedDynamic(f32);\n  tile[threadIdx.x] = x[i];').replace('{ i }', '{ i, threadIdx, sharedDynamic }'),
    '{ threads: x.length, block: 64, sharedBytes: 20_000 * 4 }',
  ],
};

export const ON_DEVICE = {
  K702: [cuda(global('x[threadIdx.x] = y;')), cuda(global('x[threadIdx.x] = 1;')), '{ grid: 1, block: x.length }'],
  K706: [cuda(global('x[0] = 1; cudaDeviceSynchronize();')), cuda(global('x[0] = 1;')), '{ grid: 1, block: 1 }'],
};

export const IN_WORDS = {
  K701: '`npx millrace doctor` says which compilers this machine has and lacks, and the command that installs one.',
  K703: 'The message names the feature. [What differs by device](cuda-code.md#what-differs-by-device) lists what the CPU device does not have.',
  K704: 'The message has the limit. A kernel that unrolls large loops, or includes large templates, is built faster in parts.',
  K705: 'A compiler removes a variable that no kernel uses. `module.global(device, name, dtype, shape)` says what the variable is.',
  K707: 'The message has the reason, such as `ENOSPC` or a signal. `npx millrace doctor` looks at the folders and the limits.',
  K708: '`npx millrace build` builds the kernels for the targets that `--for` names: see [the command](cli.md).',
};
