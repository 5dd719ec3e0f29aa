// Whether the compilers of this machine know the targets of a build ahead of time: asked once, before each kernel would fail for the same reason.
import { badArgument } from '../../core/base/arguments.js';
import type { ImageTarget, ProcessorTarget } from '../base/image-targets.js';
import type { Nvrtc } from './nvrtc-or-nvcc.js';
import { runCompiler } from './run-compiler.js';
import { outside } from '../system/environment-errors.js';
import { faultOfNvcc, findCxx, findNvcc, hostHelp } from './toolchain.js';

/** Rejects with an UnavailableError if a compiler is missing or does not run, and with an ArgumentError for a target that the compiler does not know. */
export async function checkTargets(targets: readonly ImageTarget[], nvrtc: Nvrtc | undefined, env: NodeJS.ProcessEnv): Promise<void> {
  await checkProcessors(
    targets.filter((target) => target.backend === 'cpu'),
    env,
  );
  const gpus = targets.filter((target) => target.backend === 'cuda');
  if (gpus.length === 0) return;
  const { label, known } = nvrtc === undefined ? await nvccArchitectures(env) : nvrtcArchitectures(nvrtc);
  const unknown = gpus.find(({ capability }) => known.length > 0 && !known.includes(Number(capability.join(''))));
  if (unknown === undefined) return;
  const names = known.toSorted((a, b) => a - b).map((number) => `sm_${number}`);
  throw badArgument('for', unknown.name, `The target ('${unknown.name}') is none that ${label} builds for: ${names.join(', ')}.`);
}

/** Each compiler is asked for its targets, before the next one is searched for. */
async function checkProcessors(processors: readonly ProcessorTarget[], env: NodeJS.ProcessEnv): Promise<void> {
  for (const arch of new Set(processors.map((target) => target.arch))) {
    const { command, prefix, label } = await findCxx(env, undefined, arch);
    for (const { name, options } of processors.filter((target) => target.arch === arch)) {
      const { exitCode, stderr } = await runCompiler(command, [...prefix, ...options, '-E', '-x', 'c++', '/dev/null'], {
        timeoutMs: 10_000,
      });
      if (exitCode === 0) continue;
      const [said = ''] = stderr.split('\n').filter((line) => line.includes('error'));
      const help = 'Use a newer compiler (GCC 11 or Clang 12 and newer build for each of them), or name other targets.';
      throw badArgument(
        'for',
        name,
        `The target ('${name}') is none that ${label} builds for${said === '' ? '' : ` (${said.trim()})`}. ${help}`,
      );
    }
  }
}

interface Architectures {
  /** The compiler, for messages. */
  readonly label: string;
  /** 75, 80, 86, ... Empty if the compiler does not tell. */
  readonly known: readonly number[];
}

function nvrtcArchitectures({ version, architectures = [] }: Nvrtc): Architectures {
  return { label: `NVRTC ${version.join('.')}`, known: architectures };
}

/** nvcc has the option since CUDA 11. */
async function nvccArchitectures(env: NodeJS.ProcessEnv): Promise<Architectures> {
  const nvcc = await findNvcc(env);
  const { command, prefix, label } = nvcc;
  const fault = await faultOfNvcc(nvcc);
  if (fault !== undefined) throw outside(`${label} cannot build`, fault, [hostHelp(nvcc)]);
  const { exitCode, stdout } = await runCompiler(command, [...prefix, '--list-gpu-arch'], { timeoutMs: 10_000 });
  const known = exitCode === 0 ? [...stdout.matchAll(/^compute_(\d+)\s*$/gm)].map(([, number]) => Number(number)) : [];
  return { label, known };
}
