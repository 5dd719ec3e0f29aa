// The program that does the same without Millrace: built here, and spoken to line by line, so that both sides measure by turns.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const SOURCES = fileURLToPath(new URL('../../../../bench/native/', import.meta.url));
const BUILT = fileURLToPath(new URL('../../../bench/', import.meta.url));
/** Those of the CPU device (src/toolchain/compilers/cpu-compiler.ts) where they change arithmetic. */
const OPENMP = ['-std=c++20', '-O3', '-march=native', '-fopenmp', '-ffp-contract=fast', '-fno-math-errno', '-fno-trapping-math'];

export interface Answer {
  readonly ms: number;
  readonly sum: number;
}

export class NativeKernels {
  readonly #child;
  readonly #answers;

  constructor(backend: 'cpu' | 'cuda', ordinal: string) {
    mkdirSync(BUILT, { recursive: true });
    const program = `${BUILT}kernels_${backend}`;
    if (backend === 'cuda') execFileSync('nvcc', ['-std=c++20', '-O3', '-arch=native', `${SOURCES}kernels_cuda.cu`, '-o', program]);
    else execFileSync(process.env['CXX'] ?? 'g++', [...OPENMP, `${SOURCES}kernels_openmp.cpp`, '-o', program]);
    // Threads that spin between loops would take the cores from the other side.
    const env = { ...process.env, OMP_WAIT_POLICY: 'passive' };
    this.#child = spawn(program, [ordinal], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#answers = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async measure(name: string, size: number, launches: number): Promise<Answer> {
    this.#child.stdin.write(`${name} ${size} ${launches}\n`);
    const { value, done } = await this.#answers.next();
    if (done === true) throw new Error(`The program beside the benchmark ended at ${name}.`);
    const [ms, sum] = value.split(' ').map(Number);
    return { ms: ms!, sum: sum! };
  }

  close(): void {
    this.#child.stdin.end();
  }
}
