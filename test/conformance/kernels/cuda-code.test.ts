// Chapter 4: files of CUDA C++ as they are published, against plain JavaScript. The files are in test/cuda-texts.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { describe, expect } from 'vitest';
import { ArgumentError, CompileError, cudaKernel, cudaModule, f32, f64, i32, inout, input, output, u32, u64, u8 } from 'millrace';
import { HEADER_CASES } from '../../cuda-texts/header-cases.js';
import { NAME_CASES, TEMPLATE_CASES } from '../../cuda-texts/name-cases.js';
import { PROGRAM_CASES, PROGRAM_TEMPLATE_CASES } from '../../cuda-texts/program-cases.js';
import { PUBLISHED_CASES } from '../../cuda-texts/published-cases.js';
import { textOf } from '../../cuda-texts/text-case.js';
import { checkText, expectAlike } from '../../cuda-texts/text-check.js';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { pickedTexts } from '../../support/target.js';
import { thrownBy } from '../../support/wait.js';

const SHARING = `__device__ int total;
__global__ void add(int by) { atomicAdd(&total, by); }
namespace other { static __global__ void add_more(int by) { atomicAdd(&::total, by); } }
namespace { __global__ void told(int* y) { y[threadIdx.x] = total + threadIdx.x; } }
__global__ void overloaded(int* y) { y[0] = 1; }
__global__ void overloaded(float* y) { y[0] = 1; }
template <class T> __global__ void unused(T* y) { y[0] = 1; }`;

defineChapter((target) => {
  describe('4 kernels: files of CUDA C++', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const one of pickedTexts(target, HEADER_CASES)) rule('S443', `headers: ${one.file}`, () => checkText(chapter.device, one));
    for (const one of pickedTexts(target, NAME_CASES))
      rule('S444', `names: ${one.kernel} of ${one.file}`, () => checkText(chapter.device, one));
    for (const one of pickedTexts(target, PROGRAM_CASES)) rule('S446', `programs: ${one.file}`, () => checkText(chapter.device, one));
    for (const one of pickedTexts(target, PUBLISHED_CASES)) rule('S446', `programs: ${one.file}`, () => checkText(chapter.device, one));
    for (const one of [...TEMPLATE_CASES, ...PROGRAM_TEMPLATE_CASES])
      rule('S445', `templates: ${one.kernel}`, () => checkText(chapter.device, one));

    rule('S407', 'a parameter that is a pointer to a function is refused at the definition', () => {
      const refusal =
        /^The parameter 'f' \((?:f32\*|u64)\) is '.*' in the source, at position 1: a kernel cannot take a function of the host\./;
      for (const f of [inout(f32), u64])
        for (const parameter of ['float (*f)(float)', 'float f(float)'])
          expect(thrownBy(() => cudaKernel('k', { f }, `__global__ void k(${parameter}) { f(1); }`)).message).toMatch(refusal);
    });

    const compared = {
      unless:
        target.name === 'fake-cuda' &&
        'the compiler of the fake driver leaves out the comparison of parameters, and the launch calls an array',
    };
    const whateverItsName = async (): Promise<void> => {
      const { device } = chapter;
      using x = device.zeros(32);
      for (const type of ['typedef float (*F)(float);', 'using F = decltype(&sinf);']) {
        const named = cudaKernel('k', { f: inout(f32) }, `${type}\n__global__ void k(F f) { f(1); }`);
        const error = await device.stream.launch(named, { grid: 1, block: 1 }, { f: x }).done.catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(CompileError);
        expect((error as CompileError).message).toContain(
          "'F f' in the source, at position 1: a kernel cannot take a function of the host",
        );
      }
    };
    rule('S407', 'a parameter that is a pointer to a function is refused by the compiler, whatever its name', whateverItsName, compared);

    rule('S479', 'a source brings the headers that it includes in quotes, with their kernels and templates', async () => {
      const { device } = chapter;
      const file = new URL('../../cuda-texts/project/heat.cu', import.meta.url);
      const n = 300;
      const values = Float32Array.from({ length: n }, (_, i) => ((i * 37) % 101) - 50);
      const at = (x: Float32Array, i: number): number => x[Math.min(n - 1, Math.max(0, i))]!;
      const weighted = (x: Float32Array, i: number): number => Math.fround(0.5 * at(x, i) + 0.25 * (at(x, i - 1) + at(x, i + 1)));
      const step = values.map((_, i) => weighted(values, i));
      using x = device.from(values);
      using y = device.zeros(n);
      const list = { x: input(f32), y: output(f32), n: i32 };
      const shape = { grid: 2, block: 256 };
      const text = readFileSync(file, 'utf8');
      const kernels = [
        cudaModule(file).kernel('heat_step', list),
        cudaKernel('heat_step', list, file),
        cudaKernel('heat_step', list, text, { file: fileURLToPath(file) }),
        cudaKernel('heat_step', list, text, { options: [`-I${fileURLToPath(new URL('.', file))}`] }),
      ];
      for (const made of kernels) {
        device.stream.fill(y, 0);
        device.stream.launch(made, shape, { x, y, n });
        expectAlike(await y.read(), step, 'y');
      }
      device.stream.launch(cudaModule(file).kernel('scale', { y: inout(f32), n: i32 }), shape, { y: x, n });
      expectAlike(
        await x.read(),
        values.map((v) => 3 * v),
        'scaled',
      );
    });

    rule('S479', 'a template of a header is selected by its arguments', async () => {
      const { device } = chapter;
      const values = Float32Array.from({ length: 300 }, (_, i) => ((i * 37) % 101) - 50);
      const at = (i: number): number => values[Math.min(299, Math.max(0, i))]!;
      using x = device.from(values);
      using y = device.zeros(300);
      const file = new URL('../../cuda-texts/project/heat.cu', import.meta.url);
      const rounds = cudaKernel('heat_rounds<float, 2>', { x: input(f32), y: output(f32), n: i32 }, file);
      device.stream.launch(rounds, { grid: 2, block: 256 }, { x, y, n: 300 });
      const expected = values.map((v, i) => v / 4 + (0.5 * v + 0.25 * (at(i - 1) + at(i + 1))) * 0.75);
      expectAlike(await y.read(), expected, 'two rounds');
    });

    rule('S479', 'messages name the header and its line', async () => {
      const { device } = chapter;
      const folder = new URL('../../cuda-texts/project/', import.meta.url);
      const made = cudaKernel('twice', { y: inout(f32) }, new URL('broken.cu', folder));
      const error = await device.compile(made).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(CompileError);
      const [first] = (error as CompileError).diagnostics;
      expect([first?.file, first?.line]).toEqual([fileURLToPath(new URL('common/broken.h', folder)), 4]);
      expect((error as CompileError).message).toContain('missing_name');
    });

    rule('S479', 'a URL of no readable file is refused', () => {
      for (const url of [new URL('absent.cu', import.meta.url), new URL('https://example.org/k.cu')])
        expect(thrownBy(() => cudaModule(url))).toBeInstanceOf(ArgumentError);
    });

    rule('S444', 'prototypes of overloads that are nowhere defined do not make a name ambiguous', async () => {
      const { device } = chapter;
      const text = `__global__ void put(int*);
__global__ void put(int* x, int by); __global__ void put(int* x, int by, float more);
__global__ void put(int* x, int by) { x[threadIdx.x] = threadIdx.x * by; }`;
      using x = device.zeros(4, 'i32');
      const params = { x: output(i32), by: i32 };
      for (const made of [cudaKernel('put', params, text), cudaModule(text).kernel('put', params)]) {
        device.stream.fill(x, 0);
        device.stream.launch(made, { grid: 1, block: 4 }, { x, by: 5 });
        expect([...(await x.read())]).toEqual([0, 5, 10, 15]);
      }
    });

    rule('S444', 'the parameters select one of the overloads of a kernel', async () => {
      const { device } = chapter;
      const text = textOf('kernel-overloads');
      const module = cudaModule(text);
      expect(inspect(module)).toContain('scale, summed');
      using f = device.from(Float32Array.of(1, 2, 3, 4));
      using d = device.from(Float64Array.of(1, 2, 3, 4));
      using i = device.from(Int32Array.of(1, 2, 3, 4));
      const grid = { grid: 1, block: 4 };
      device.stream.launch(module.kernel('scale', { x: inout(f32) }), grid, { x: f });
      device.stream.launch(module.kernel('scale', { x: inout(f64) }), grid, { x: d });
      device.stream.launch(module.kernel('scale', { x: inout(i32), by: i32 }), grid, { x: i, by: 4 });
      device.stream.launch(module.kernel('summed', { x: inout(i32) }), grid, { x: i });
      device.stream.launch(module.kernel('summed', { x: inout(f64) }), grid, { x: d });
      // Alone: one of several, one without a C name, and the one of a namespace.
      device.stream.launch(cudaKernel('units::scale', { x: inout(f32) }, text), grid, { x: f });
      device.stream.launch(cudaKernel('scale', { x: inout(f64) }, text), grid, { x: d });
      device.stream.launch(cudaKernel('summed', { x: inout(i32) }, text), grid, { x: i });
      expect([...(await f.read())]).toEqual([20, 40, 60, 80]);
      expect([...(await d.read())]).toEqual([90, 90, 90, 90]);
      expect([...(await i.read())]).toEqual([160, 160, 160, 160]);
      const none = thrownBy(() => module.kernel('scale', { x: inout(u8) }));
      expect(none).toBeInstanceOf(ArgumentError);
      expect((none as Error).message).toBe(
        "params fits none of the 3 overloads of 'scale' in the source: (float* x), (double* x), (counter* x, int by).",
      );
    });

    rule('S446', 'members for the host that members for both sides call are there for both', async () => {
      const { device } = chapter;
      const text = `#include <cstdio>
struct Scaled {
  int by;
  __host__ Scaled(int by);
  __host__ int twice() const { return 2 * by; }
  __host__ int less(int from) const;
  __host__ void show() const { std::printf("%d", by); fflush(stdout); }
  __host__ __device__ int of(int x) const { return twice() * x - less(x); }
};
__host__ Scaled::Scaled(int by) : by(by) {}
__host__ int Scaled::less(int from) const { return from - by; }
__global__ void k(int* x, const Scaled* with) { x[threadIdx.x] = with->of(threadIdx.x); }
int main() { Scaled s(1); s.show(); }`;
      using x = device.zeros(4, 'i32');
      using by = device.from(Int32Array.of(3));
      const params = { x: output(i32), with: input(i32) };
      device.stream.launch(cudaKernel('k', params, text), { grid: 1, block: 4 }, { x, with: by });
      expect([...(await x.read())]).toEqual([3, 8, 13, 18]);
    });

    rule('S443', "names of the host's library may be names of a source that uses namespace std", async () => {
      const { device } = chapter;
      const text = `#include <iostream>
#include <vector>
using namespace std;
__device__ int stack[4];
struct set { int a; };
__global__ void k(int* x) {
  int hex = 2;
  set s = {max(3, 4)};
  stack[threadIdx.x] = hex * s.a;
  x[threadIdx.x] = stack[threadIdx.x] + threadIdx.x;
}
int main() { vector<int> v; cout << v.size(); }`;
      using x = device.zeros(4, 'i32');
      device.stream.launch(cudaKernel('k', { x: output(i32) }, text), { grid: 1, block: 4 }, { x });
      expect([...(await x.read())]).toEqual([8, 9, 10, 11]);
    });

    rule('S443', 'std::tie assigns pairs and tuples, and std::ignore takes what is not needed', async () => {
      const { device } = chapter;
      const text = `#include <tuple>
#include <utility>
__device__ std::pair<int, float> both(int i) { return {i, i / 2.0f}; }
__global__ void k(int* x) {
  int a, b; float c;
  std::tie(a, c) = both(threadIdx.x);
  std::tie(std::ignore, b) = std::make_tuple(1.5f, 10);
  x[threadIdx.x] = a + b + int(2 * c);
}`;
      using x = device.zeros(4, 'i32');
      device.stream.launch(cudaKernel('k', { x: output(i32) }, text), { grid: 1, block: 4 }, { x });
      expect([...(await x.read())]).toEqual([10, 12, 14, 16]);
    });

    rule('S481', 'pairs of half and bfloat16 numbers are assigned from braces', async () => {
      const { device } = chapter;
      const text = `#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void k(float* x) {
  half a = 1.5f, b = 2.0f; half2 h; h = {a, b};
  __nv_bfloat16 c = 3.0f, d = 4.0f; __nv_bfloat162 g; g = {c, d};
  __half2_raw raw = h; half2 i; i = raw;
  x[0] = __low2float(h); x[1] = __high2float(i); x[2] = __low2float(g); x[3] = __high2float(g);
}`;
      using x = device.zeros(4);
      device.stream.launch(cudaKernel('k', { x: output(f32) }, text), { grid: 1, block: 1 }, { x });
      expect([...(await x.read())]).toEqual([1.5, 2, 3, 4]);
    });

    rule('S479', 'a path in place of the text is refused, and the error tells how to give a file', () => {
      for (const [path, shown] of [
        ['./blur.cu', "new URL('./blur.cu', import.meta.url)"],
        ['kernels/my blur.cuh\n', "new URL('kernels/my blur.cuh', import.meta.url)"],
        ['/home/me/blur.cu', "new URL('file:///home/me/blur.cu')"],
        ['file:///home/me/blur.cu', "new URL('file:///home/me/blur.cu')"],
      ] as const) {
        for (const made of [() => cudaModule(path), () => cudaKernel('blur', { y: inout(f32) }, path)]) {
          const error = thrownBy(made);
          expect(error).toBeInstanceOf(ArgumentError);
          expect((error as Error).message).toBe(
            `The source ('${path.trim()}') is the path of a file, but a string is the text itself. ` +
              `For the file, pass its URL, ${shown}, or pathToFileURL(path) of node:url.`,
          );
        }
      }
      const wrong = thrownBy(() => cudaModule({ file: 'blur.cu' } as never));
      expect((wrong as Error).message).toBe(
        "The source (object) must be a string, or the URL of a file: new URL('./kernels.cu', import.meta.url).",
      );
      // A text may end with the name of a file.
      cudaModule('__global__ void k() {} // of blur.cu');
    });

    rule('S480', 'sources take the branches of CUDA compilers, and what is not compiled is not judged', async () => {
      const { device } = chapter;
      const source = `#if !defined(__CUDACC__) || !defined(__CUDACC_RTC__) || CUDART_VERSION < 11000 || __CUDACC_VER_MAJOR__ < 11
#error "This is not CUDA."
#endif
#if __CUDA_ARCH__ < 600
__device__ double atomicAdd(double *at, double by) { return 0; }
#endif
#if 0
#include <mma.h>
__device__ void never() { asm("trap;"); }
#endif
#define __shfl(value, lane) __shfl_sync(0xffffffffu, value, lane)
__global__ void spread(int *x, double *sum, int *arch) {
  x[threadIdx.x] = __shfl(x[threadIdx.x], 3);
  atomicAdd(sum, 0.5);
  arch[0] = __CUDA_ARCH__;
}`;
      using x = device.from(Int32Array.from({ length: 32 }, (_, i) => i * i));
      using sum = device.zeros(1, 'f64');
      using arch = device.zeros(1, 'i32');
      const spread = cudaKernel('spread', { x: inout(i32), sum: inout(f64), arch: output(i32) }, source);
      device.stream.launch(spread, { grid: 1, block: 32 }, { x, sum, arch });
      expect([...(await x.read())]).toEqual(Array.from({ length: 32 }, () => 9));
      expect(await sum.item(0)).toBe(16);
      expect(await arch.item(0)).toBeGreaterThanOrEqual(600);
    });

    rule('S446', 'a kernel that the device lacks the means for refuses itself, and not the kernels beside it', async () => {
      const { device } = chapter;
      const source = textOf('some-are-absent');
      const params = { x: input(i32), y: output(i32), n: i32 };
      const module = cudaModule(source);
      using x = device.from(Int32Array.of(1, 2, 3));
      using y = device.zeros(3, 'i32');
      for (const make of [() => cudaKernel('lanes', { y: output(u32) }, source), () => module.kernel('lanes', { y: output(u32) })]) {
        using lanes = device.zeros(4, 'u32');
        const launched = device.stream.launch(make(), { grid: 1, block: 4 }, { y: lanes });
        if (target.name === 'cuda') expect([...(await lanes.read())]).toEqual([0, 1, 2, 3]);
        else await expect(launched.done).rejects.toThrow(/inline PTX|lanes/);
      }
      device.stream.launch(module.kernel('usual', params), { grid: 1, block: 3 }, { x, y, n: 3 });
      expect([...(await y.read())]).toEqual([3, 6, 9]);
    });

    rule('S444', 'macros of attributes stand before and after void, also several, and with arguments', async () => {
      const { device } = chapter;
      const heads = {
        after: 'extern "C" __global__ void BOUNDS(64) after',
        between: '__global__ BOUNDS(64) void between',
        before: 'BOUNDS(64) __global__ void before',
        several: '__global__ void NOTHING((1), 2) BOUNDS(64) several',
        both: '__global__ NOTHING(1, 2) void QUIET BOUNDS(64) both',
      };
      const body = '(int* y, int by) { y[threadIdx.x] = threadIdx.x * by; }';
      const text = Object.values(heads).map((head) => `${head}${body}`);
      const macros = '#define QUIET\n#define NOTHING(a, b)\n#define BOUNDS(n) __launch_bounds__(n)\n';
      const module = cudaModule(macros + text.join('\n'));
      for (const [at, name] of Object.keys(heads).entries()) {
        using y = device.zeros(32, i32);
        device.stream.launch(module.kernel(name, { y: output(i32), by: i32 }), { grid: 1, block: 32 }, { y, by: at + 2 });
        expect([name, ...(await y.read())]).toEqual([name, ...Array.from({ length: 32 }, (_, n) => n * (at + 2))]);
      }
    });

    rule('S444', 'a module\'s kernels, in namespaces and without extern "C", share its variables', async () => {
      const { device } = chapter;
      const module = cudaModule(SHARING);
      using y = device.zeros(4, 'i32');
      using total = module.global(device, 'total', i32, 1);
      device.stream.launch(module.kernel('add', { by: i32 }), { grid: 2, block: 2 }, { by: 5 });
      device.stream.launch(module.kernel('other::add_more', { by: i32 }), { grid: 1, block: 1 }, { by: 100 });
      device.stream.launch(module.kernel('told', { y: output(i32) }), { grid: 1, block: 4 }, { y });
      expect([...(await y.read())]).toEqual([120, 121, 122, 123]);
      expect(await total.item(0)).toBe(120);
    });
  });
});
