// Which declarations of a source are the host's.
import { expect, test } from 'vitest';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { withoutInstantiations } from '../../../src/cuda-cpp/select/dialect.js';
import { onlyFor, withoutHostCode } from '../../../src/cuda-cpp/select/host-code.js';
import { cudaModule } from '../../../src/cuda-module.js';
import { input, output } from '../../../src/core/kernels/kernel.js';
import { f32 } from '../../../src/core/elements/dtype.js';

/** The lines that are left. */
function left(source: string): string[] {
  const made = withoutHostCode(source);
  expect(made).toHaveLength(source.length);
  expect(made.split('\n')).toHaveLength(source.split('\n').length);
  return made
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '');
}

const KERNEL = '__global__ void k(float* y) { y[0] = f(y[1]); }';

test.each([
  ['main', 'int main() { return 0; }', []],
  [
    'functions whose bodies are try blocks',
    'int main() try {\n  run();\n} catch (const Error& e) { return 1; } catch (...) {\n}\nvoid run() try { k<<<1, 1>>>(0); } catch (int) {}',
    [],
  ],
  ['a launch', 'void run(float* y) { k<<<1, 1>>>(y); }', []],
  ["a call of CUDA's API", 'float* make(int n) { float* p; cudaMalloc(&p, n); return p; }', []],
  ['a __host__ function', '__host__ void run() {}', []],
  ['a prototype of a removed function', 'void run(float*); void run(float* y) { k<<<1, 1>>>(y); }', []],
  ['a function that nothing of the device names', 'void check(float* x) { x[0] = 1; }\nint main() { check(0); }', []],
  ['a template of the host', 'template <typename T, int N = 3> void run(T* y) { k<<<1, N>>>(y); }', []],
  [
    'an explicit instantiation of it, though device code has a function of its name',
    'template <typename T> void h(T* y) { cudaFree(y); }\ntemplate void h<int>(int*);\n__device__ void g() { n::h(3); }',
    ['__device__ void g() { n::h(3); }'],
  ],
  [
    'explicit instantiations by a macro',
    'template <typename T> void h(T* y) { cudaFree(y); }\n#define MAKE(T) \\\n  template void h(T*)\nMAKE(int);\nMAKE(float);',
    ['#define MAKE(T) \\', '  template void h(T*)'],
  ],
  ['a class with members of the host only', 'struct T { cudaEvent_t e; T() { cudaEventCreate(&e); } };', []],
  [
    'lines of its comments that begin as directives do, but not directives',
    'void run(float* y) {\n/* Steps:\n# first\n#define N 3\n*/\n#if 1 \\ \n  && 1\n  k<<<1, 1>>>(y);\n#endif\n}',
    ['#if 1 \\', '  && 1', '#endif'],
  ],
  [
    'a variable of the host',
    'static std::vector<float> values(10);\nstd::atomic<int> count{0};\nstatic cudaStream_t stream = nullptr;',
    [],
  ],
  [
    'a macro of a check, which no device code uses',
    '#define CHECK(x) check((x))\nvoid check(cudaError_t e) { if (e) exit(1); }',
    ['#define CHECK(x) check((x))'],
  ],
  [
    'a declaration behind a macro without arguments',
    'NAMESPACE_END\nusing thrust::complex;\nvoid run() { k<<<1, 1>>>(0); }',
    ['NAMESPACE_END'],
  ],
  ['a function behind the call of a macro', 'DEFINE(float)\nvoid run() { k<<<1, 1>>>(0); }', ['DEFINE(float)']],
  [
    'a using-declaration and an alias of the host',
    'using std::generate;\nusing Clock = std::chrono::steady_clock;\ntypedef std::vector<int> Ints;',
    [],
  ],
  [
    'types of processes, in each branch that declares them, and classes that draw random numbers of the host',
    '#ifdef W\ntypedef HANDLE Process;\n#else\ntypedef pid_t Process;\n#endif\nstruct Input { float next() { return lrand48(); } };\nint main() { return 0; }',
    ['#ifdef W', '#else', '#endif'],
  ],
  ['ranges of a profiler', 'struct Range { Range(const char* n) { nvtxRangePushA(n); } };\nint main() { return 0; }', []],
  ['a function of the host with the name of a kernel', 'int k(int n) { k<<<1, n>>>(0); return n; }', []],
  [
    'an overload of a function of the device',
    'int main() {}\nfloat g(double v) { return v; }\n__device__ float g(float v) { return v; }',
    ['__device__ float g(float v) { return v; }'],
  ],
  [
    'a class that only a variable of the host names',
    'struct State { cudaStream_t stream; bool isOpen = false; };\nstatic State state;',
    [],
  ],
  ['a destructor of the host', 'struct V { float *p; };\nV::~V() { cudaFree(p); }', ['struct V { float *p; };']],
  ['a member that uses a function of the host', 'struct S {};\nvoid go() { k<<<1, 1>>>(0); }\nvoid S::run() { go(); }', ['struct S {};']],
  ['a table of functions of the host', 'void go() { k<<<1, 1>>>(0); }\nvoid (*table[])() = {go, go};', []],
  ['a module of Python', 'void go() { k<<<1, 1>>>(0); }\nPYBIND11_MODULE(X, m) { m.def("go", &go); }', []],
  [
    'a module of Python behind functions that macros make',
    '#define BIND(T, V) void run_##T##_##V(T *y) { k<<<1, 1>>>(y); }\nBIND(int, a)\nBIND(float, b)\nPYBIND11_MODULE(X, m) { m.def("run", X); }',
    ['#define BIND(T, V) void run_##T##_##V(T *y) { k<<<1, 1>>>(y); }'],
  ],
  [
    'what stands behind an operator',
    '__device__ void operator+=(float4 &a, float4 b) { a.x += b.x; }\nint main() { cudaDeviceSynchronize(); }',
    ['__device__ void operator+=(float4 &a, float4 b) { a.x += b.x; }'],
  ],
  ['a time of the host', 'static double now() { struct timeval t; gettimeofday(&t, 0); return t.tv_sec; }\nstruct timeval started;', []],
  ['headers of the system', '#include <sys/mman.h>\n#include <dirent.h>\nint main() {}', []],
  ['a directive in main', 'int main() {\n#define N 3\n  k<<<1, 1>>>(0);\n}', ['#define N 3']],
])('%s goes', (_what, host, kept) => {
  const device = `float f(float v) { return v; }\n${KERNEL}`;
  expect(left(`${host}\n${device}`)).toEqual([...kept, ...device.split('\n')]);
});

test.each([
  ['a function that a kernel calls', 'float f(float v) { return v; }'],
  ['a function that such a function calls', 'float g(float v) { return v; }\nfloat f(float v) { return g(v); }'],
  ['a function that a used macro names', '#define f(v) g(v)\nfloat g(float v) { return v; }'],
  ['annotations from a macro', '#ifdef X\n#define HD __host__ __device__\n#else\n#define HD\n#endif\nHD float f(float v) { return v; }'],
  [
    'members and operators',
    'struct V { float x; V(float v) : x{v} {} float operator()(float v) const { return v; } };\nfloat f(float v) { return V(v)(v); }',
  ],
  ['a variable that a kernel names', 'const float factor = 2.0f;\nfloat f(float v) { return v * factor; }'],
  [
    'a function of the device with a name of the library',
    '__device__ float rand(float v) { return v; }\nfloat f(float v) { return rand(v); }',
  ],
  ['a definition of a function that was declared for the device', '__device__ float f(float v);\nfloat f(float v) { return v; }'],
  ['constants', 'constexpr int size() { return 4; }\n__constant__ float table[size()];\nfloat f(float v) { return v; }'],
  ['calls of macros', '#define MAKE(name) float name(float v) { return v; }\nMAKE(f)\nMAKE(g);'],
  [
    'what kernels use by another name',
    'using std::max;\nusing Real = float;\ntypedef Real (*Function)(Real);\nReal f(Real v) { return max(v, 1.0f); }',
  ],
  ['a lambda, a typedef and an enum', 'typedef struct { int a; } S;\nenum { A, B };\nauto f = [](float v) { return v; };'],
])('%s stays', (_what, device) => {
  const source = `${device}\n${KERNEL}\nint main() { k<<<1, 1>>>(0); }`;
  expect(left(source)).toEqual([...device.split('\n'), KERNEL]);
});

test('a source without the host, or with brackets that do not match, stays as it is', () => {
  for (const source of [KERNEL, 'float f(float v) { return v; }', `int main() { \n${KERNEL}`, ''])
    expect(withoutHostCode(source)).toBe(source);
  const branches = `#ifdef A\nvoid run() {\n#else\nvoid run(int n) {\n#endif\n  k<<<1, 1>>>(0);\n}\nfloat f(float v) { return v; }\n${KERNEL}`;
  expect(left(branches)).toEqual(['#ifdef A', '#else', '#endif', 'float f(float v) { return v; }', KERNEL]);
});

test('kernels have the source of the caller, facts of the rest, and messages with its lines', () => {
  const source = `float f(float v) { return v; }\nint main() { k<<<1, 1>>>(0); assert(1); }\n__global__ void k(const float* x, float* y) { y[0] = f(x[0]); }`;
  const made = cudaKernel('k', { x: input(f32), y: output(f32) }, source);
  expect(made.source).toBe(source);
  expect(made.build).toMatchObject({ original: source, isBounded: true, isChecked: false });
  expect(made.build).not.toHaveProperty('isLaunching');
  expect(made.build).not.toHaveProperty('isAsserting');
  expect(cudaModule(source).source).toBe(source);
});

test('a source for one kernel has what the kernel needs', () => {
  const source = `__device__ int a() { return 1; }
__device__ int b() { return a(); }
__global__ void one(int* y) { y[0] = a(); }
__global__ void two(int* y) { y[0] = b(); one<<<1, 1>>>(y); }`;
  const lines = source.split('\n');
  const of = (...roots: readonly string[]): string[] =>
    onlyFor(source, roots)
      .split('\n')
      .filter((line) => line.trim() !== '');
  expect(of('one')).toEqual([lines[0], lines[2]]);
  expect(of('two')).toEqual(lines);
});

test('calls of macros of absent headers go from a source for one kernel', () => {
  const kept = `#define MAKE(T) __device__ T zero() { return 0; }
MAKE(int)
__global__ void k(int* y) { y[0] = zero(); }`;
  const calls = `TEST_CASE("sum") { REQUIRE(1 == 1); }
BENCHMARK(sum)->Range(1, 8);
REGISTER_OP("X").Input("a: float").Shape([](Context* c) { return 1; });
DEFINE_int32(n, 10, "count");`;
  const lines = onlyFor(`${calls}\n${kept}`, ['k']).split('\n');
  expect(lines.filter((line) => line.trim() !== '')).toEqual(kept.split('\n'));
});

test('explicit instantiations go, also in macros, but for those in strings and comments', () => {
  const rest = withoutInstantiations(`template <typename T> __global__ void k(T* y);
template __global__ void k<int>(int*); // template inline f();
#define MAKE(T) \\
  template __global__ void k<T>(T*)
const char* text = "template inline f();"; auto x = y.template f<int>();
`);
  expect(rest.replace(/ +$/gm, '').split('\n')).toEqual([
    'template <typename T> __global__ void k(T* y);',
    `${' '.repeat(39)}// template inline f();`,
    '#define MAKE(T) \\',
    '',
    'const char* text = "template inline f();"; auto x = y.template f<int>();',
    '',
  ]);
});

test('main goes if a macro stands for its head', () => {
  const macro = '#define MAIN int main(int argc, char** argv)';
  expect(left(`${macro}\n${KERNEL}\nMAIN { k<<<1, 1>>>(0); }`)).toEqual([macro, KERNEL]);
});

test('includes of cuRAND go if no code of a device uses it', () => {
  const include = '#include <curand_kernel.h>';
  expect(left(`${include}\n${KERNEL}\nint main() { curandGenerator_t g; k<<<1, 1>>>(0); }`)).toEqual([KERNEL]);
  const kernel = '__global__ void k(float* y) { curandState s; y[0] = curand_uniform(&s); }';
  expect(left(`${include}\n${kernel}\nint main() { k<<<1, 1>>>(0); }`)).toEqual([include, kernel]);
});

test('parameters hide variables of their names', () => {
  const source = `const float limit = 2.0f;
const float square = limit * limit;
struct params { int n; };
__global__ void k(float* y, const params params, float square, int) { if (y[0] < square) y[0] = params.n; }
int main() { k<<<1, 1>>>(0, {3}, square, 1); }`;
  expect(left(source)).toEqual(source.split('\n').slice(2, 4));
  const used = source.replace('< square', '< limit');
  expect(left(used)).toEqual([source.split('\n')[0], ...used.split('\n').slice(2, 4)]);
});

test('attributes go with the declaration that macros give them to', () => {
  const macros = '#define FORMAT(...) __attribute__((format(printf, __VA_ARGS__)))\n#define API extern';
  const source = `${macros}
FORMAT(2, 3)
API char* name_of(char* name, const char* text, ...);
FORMAT(1, 2) API void stop(const char* text, ...);
API FORMAT(1, 2) void told(const char* text, ...);
DEFINE(3)
int unused(int v);
__global__ void k(int* y) { told("a"); y[0] = 1; }`;
  expect(
    onlyFor(source, ['k'])
      .split('\n')
      .map((line) => line.trim()),
  ).toEqual([
    ...macros.split('\n'),
    '',
    '',
    '',
    'API FORMAT(1, 2) void told(const char* text, ...);',
    'DEFINE(3)',
    '',
    '__global__ void k(int* y) { told("a"); y[0] = 1; }',
  ]);
});

test.each([
  ['#define P(prefix) const int prefix##1 = 3;', 'P(at)', ['at1'], ['of1', 'step2', 'f']],
  ['#define RUN(n) step_##n(y)', 'RUN(2)', ['step_2'], ['step_4', 'f']],
  ['#define TOLD(text, ...) printf(text, ##__VA_ARGS__)', 'TOLD("a", 1)', [], ['TOLD_', 'f']],
  ['#define JOIN(a, b) a##b', 'JOIN(ste, p2)(y)', ['step2', 'f'], []],
  ['#define FIRST one##two', 'FIRST(y)', ['onetwo'], ['three']],
])('%s keeps the functions whose names it can make', (macro, use, made, others) => {
  const lines = [...made, ...others].map((name) => `__device__ int ${name}(int* y) { return 1; }`);
  const source = `${macro}\n${lines.join('\n')}\n__global__ void k(int* y) { ${use}; }`;
  const names = onlyFor(source, ['k']).match(/(?<=int )\w+(?=\(int\* y\) \{ return)/g) ?? [];
  expect(names).toEqual(made);
});

/** A megabyte takes 1.2 s; what grows with the square took minutes. */
const LENGTH = 200_000;

test(`${LENGTH} bytes of arbitrary source are read in linear time`, { timeout: 60_000 }, () => {
  const pieces = [
    'void f() { k<<<1, 1>>>(); }\n',
    '{',
    'template <',
    'struct S {',
    'a > (b) ',
    '(',
    '#if 0\n',
    '#define a b\n',
    '#define A(x) x##b c##x\n',
    '#define c a##b##c\nvoid h() {}\n',
    'int x = {1};',
    'M(x) ',
  ];
  for (const piece of pieces) {
    const source = `int main() {}\n${piece.repeat(Math.ceil(LENGTH / piece.length))}`;
    const before = process.cpuUsage();
    withoutHostCode(source);
    expect(process.cpuUsage(before).user / 1e3, piece).toBeLessThan(2_000);
  }
});
