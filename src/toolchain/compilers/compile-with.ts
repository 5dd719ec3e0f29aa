// Runs a compiler once for a kernel. A failure for a reason outside the source is thrown here. The caller handles what the
// compiler reports about the source.
import { readFileSync } from 'node:fs';
import type { BuildSpec } from '../../core/channel/build-spec.js';
import { machineFault, timedOut, titleOf } from '../base/diagnostics.js';
import { outside } from '../system/environment-errors.js';
import { COMPILER_TIMEOUT_MS, runCompiler, type CompilerRun, type RunOptions } from './run-compiler.js';
import { hostFault, hostHelp, type Toolchain } from './toolchain.js';

/** Throws an UnavailableError (K707) for a reason outside the source, and a CompileError (K704) when the compiler took too long. */
export async function compileWith(tools: Toolchain, spec: BuildSpec, args: readonly string[], options: RunOptions): Promise<CompilerRun> {
  const { command, prefix, label, family } = tools;
  const run = await runCompiler(command, [...prefix, ...args], options).catch((cause: unknown) => {
    throw outside(`${titleOf(spec)} was not built: the compiler ${command} cannot be started`, cause);
  });
  if (run.isTimedOut) throw timedOut(label, spec, options.timeoutMs ?? COMPILER_TIMEOUT_MS);
  if (run.exitCode === 0) return run;
  const host = family === 'nvcc' ? hostFault(run.stderr) : undefined;
  if (host !== undefined) throw outside(`${titleOf(spec)} was not built by ${label}`, host, [hostHelp(tools)]);
  const ended = run.signal === null ? machineFault(`${run.stderr}\n${run.stdout}`) : `it was ended by ${run.signal}`;
  if (ended !== undefined) throw outside(`${titleOf(spec)} was not built by ${label}`, ended);
  return run;
}

/** Reads the file that a successful compiler wrote. Throws an UnavailableError (K707) when it is missing or empty. */
export function outputOf({ label }: Toolchain, spec: BuildSpec, path: string): Buffer {
  let content: Buffer;
  try {
    content = readFileSync(path);
  } catch (cause) {
    const isAbsent = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    throw outside(`${titleOf(spec)} was not built by ${label}`, isAbsent ? 'it succeeded and wrote no image' : cause);
  }
  if (content.length === 0) throw outside(`${titleOf(spec)} was not built by ${label}`, 'it succeeded and wrote an empty image');
  return content;
}
