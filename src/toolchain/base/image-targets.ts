// What images are built for ahead of time: processors and GPUs, by the names that g++ and nvcc have for them.
import { arch } from 'node:os';
import { badArgument, show } from '../../core/base/arguments.js';
import { didYouMean } from '../../core/base/nearest-name.js';

export type ComputeCapability = readonly [major: number, minor: number];

/** A processor: `cpu:x86-64-v3`. */
export interface ProcessorTarget {
  readonly backend: 'cpu';
  readonly name: string;
  /** As `os.arch()` has it. */
  readonly arch: 'x64' | 'arm64';
  /** Those of the C++ compiler. */
  readonly options: readonly string[];
}

/** A GPU: machine code of it (`sm_80`), or PTX that newer drivers compile for it and for later ones (`compute_80`). */
export interface GpuTarget {
  readonly backend: 'cuda';
  readonly name: string;
  readonly capability: ComputeCapability;
  readonly isPtx: boolean;
}

export type ImageTarget = ProcessorTarget | GpuTarget;

/**
 * The processors, the best first, with the flags of /proc/cpuinfo that each needs beyond the next one's. Virtual machines hide LZCNT (`abm`) on
 * processors that have all else of x86-64-v3, and only counts of leading zeros would gain from it: images do without.
 */
const PROCESSORS: readonly (ProcessorTarget & { readonly flags: readonly string[] })[] = [
  processor('x86-64-v4', 'x64', ['avx512f', 'avx512bw', 'avx512cd', 'avx512dq', 'avx512vl']),
  processor('x86-64-v3', 'x64', ['avx', 'avx2', 'bmi1', 'bmi2', 'f16c', 'fma', 'movbe', 'xsave']),
  processor('x86-64-v2', 'x64', ['cx16', 'lahf_lm', 'popcnt', 'sse4_1', 'sse4_2', 'ssse3']),
  processor('x86-64', 'x64', []),
  { ...processor('aarch64', 'arm64', []), options: ['-march=armv8-a'] },
];

function processor(name: string, of: 'x64' | 'arm64', flags: readonly string[]): ProcessorTarget & { readonly flags: readonly string[] } {
  return { backend: 'cpu', name: `cpu:${name}`, arch: of, options: [`-march=${name}`, '-mno-lzcnt'], flags };
}

/** The targets of a list such as `cpu:x86-64-v3,sm_80`, and PTX of the newest GPU in it. Throws ArgumentError for a name that is none. */
export function imageTargets(list: string): readonly ImageTarget[] {
  const found = new Map<string, ImageTarget>();
  for (const name of list.split(',').map((part) => part.trim())) {
    const target = targetOf(name);
    if (target === undefined) {
      const processors = PROCESSORS.map((one) => one.name);
      const near = didYouMean(name, [...processors, 'sm_80', 'sm_90', 'sm_120', 'compute_80']);
      const known = [...processors, 'sm_80, sm_90, sm_120 and so on', 'compute_80 and so on (PTX)'].join(', ');
      throw badArgument('for', list, `There is no target ${show(name)}${near}. The targets are ${known}.`);
    }
    found.set(target.name, target);
  }
  const gpus = [...found.values()].filter((target) => target.backend === 'cuda');
  const newest = gpus.toSorted((a, b) => numberOf(b.capability) - numberOf(a.capability))[0];
  if (newest !== undefined) {
    const ptx = gpuTarget('compute', newest.capability);
    found.set(ptx.name, ptx);
  }
  return [...found.values()];
}

/** The target of this name, undefined for a name that is none. */
export function targetOf(name: string): ImageTarget | undefined {
  const [, kind, digits] = /^(sm|compute)_(\d{2,3})$/.exec(name) ?? [];
  if (kind !== undefined) return gpuTarget(kind as 'sm' | 'compute', [Number(digits!.slice(0, -1)), Number(digits!.slice(-1))]);
  return PROCESSORS.find((one) => one.name === name);
}

function gpuTarget(kind: 'sm' | 'compute', capability: ComputeCapability): GpuTarget {
  return { backend: 'cuda', name: `${kind}_${capability.join('')}`, capability, isPtx: kind === 'compute' };
}

function numberOf([major, minor]: ComputeCapability): number {
  return 10 * major + minor;
}

/** The targets whose images a GPU runs, the best first: its own major version up to its minor, then PTX that is not newer. */
export function targetsOfGpu(targets: readonly ImageTarget[], own: ComputeCapability): readonly ImageTarget[] {
  const runs = ({ capability, isPtx }: GpuTarget): boolean => numberOf(capability) <= numberOf(own) && (isPtx || capability[0] === own[0]);
  return targets
    .filter((target) => target.backend === 'cuda')
    .filter(runs)
    .toSorted((a, b) => Number(a.isPtx) - Number(b.isPtx) || numberOf(b.capability) - numberOf(a.capability));
}

/** The targets whose images a processor runs, the best first. `flags`: those of its first entry in /proc/cpuinfo. */
export function targetsOfProcessor(
  targets: readonly ImageTarget[],
  flags: ReadonlySet<string>,
  own: string = arch(),
): readonly ImageTarget[] {
  return namesOfProcessor(flags, own).flatMap((name) => targets.filter((target) => target.name === name));
}

/** The best target of a processor. */
export function targetOfProcessor(flags: ReadonlySet<string>): string {
  return namesOfProcessor(flags, arch())[0]!;
}

function namesOfProcessor(flags: ReadonlySet<string>, own: string): readonly string[] {
  const runs: string[] = [];
  // Each version has what the one below it has.
  for (const one of PROCESSORS.toReversed()) {
    if (one.arch !== own) continue;
    if (!one.flags.every((flag) => flags.has(flag))) break;
    runs.unshift(one.name);
  }
  return runs;
}
