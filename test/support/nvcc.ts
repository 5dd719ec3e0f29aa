// nvcc, where there is one: are texts CUDA C++?
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { passOnce } from './kept-output.js';
import { IS_LONG } from './long.js';

const NVCC = process.env['MILLRACE_NVCC'] ?? 'nvcc';
const { status: found, stdout: version } = spawnSync(NVCC, ['--version'], { encoding: 'utf8' });
export const hasNvcc: boolean = found === 0;

/** A kernel in TypeScript, in the C++ that was written for it. */
interface Generated {
  readonly name: string;
  readonly source: string;
}

/** Throws what nvcc says of the texts, whose device code it compiles. `facts`: the texts of the headers that the options name. */
export function checkWithNvcc(
  texts: readonly string[],
  options: readonly string[] = [],
  facts: readonly string[] = [],
  to = '--ptx',
): void {
  const factsOf = (text: string): string[] => ['nvcc', version, to, ...options, ...facts, text];
  passOnce(texts, factsOf, (fresh) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-nvcc-'));
    try {
      const names = fresh.map((_, at) => `text${at}.cu`);
      for (const [at, text] of fresh.entries()) writeFileSync(join(folder, names[at]!), text);
      // Its front end judges the texts: they are not optimised.
      const args = [to, '-rdc=true', '--threads', '0', '-Xcicc', '-O0', ...options, ...names];
      const { status, stderr } = spawnSync(NVCC, args, { cwd: folder, encoding: 'utf8' });
      if (status !== 0 || stderr !== '') throw new Error(`nvcc ended with ${status}: ${stderr}`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

/**
 * Throws what nvcc says. Texts are one translation unit, each in a namespace, as far as that goes: generated ones bring their
 * helpers each, those of users may include headers, or have a name that another has.
 */
export function compileWithNvcc(generated: readonly Generated[], texts: readonly string[] = []): void {
  checkWithNvcc([...(generated.length > 0 ? [together(generated)] : []), ...grouped(texts)], ['-w']);
}

/** Kernels have C names, whatever namespace they stand in. */
function together(generated: readonly Generated[]): string {
  const spaces = generated.map(({ name, source }, at) => {
    const renamed = source.replace(/(extern "C" __global__ void(?: __launch_bounds__\(\d+\))? )(\w+)\(/, `$1$2_${at}(`);
    if (renamed === source) throw new Error(`The text of kernel ${name} has no kernel.`);
    return `namespace n${at} {\n${renamed}\n}`;
  });
  return spaces.join('\n');
}

function grouped(texts: readonly string[]): string[] {
  const [names, shared, alone] = [new Set<string>(), [] as string[], [] as string[]];
  for (const text of texts) {
    const kernels = [...text.matchAll(/extern "C"[^(]*?__global__[^;{]*?(\w+)\s*\(/g)].map((match) => match[1]!);
    if (text.includes('#include') || kernels.length === 0 || kernels.some((name) => names.has(name))) {
      alone.push(text);
      continue;
    }
    for (const name of kernels) names.add(name);
    shared.push(text);
  }
  // A run of nvcc each: every third in the short form.
  const picked = alone.filter((_, at) => IS_LONG || at % 3 === 0);
  return [shared.map((text, at) => `namespace t${at} {\n${text}\n}`).join('\n'), ...picked];
}
