// Kernels of TypeScript in one source: the compiler reads the headers once for all of them.
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import type { Images } from './images.js';

/** Each in a namespace, because each has its own helpers. */
function inNamespaces(sources: readonly string[]): string {
  return sources.map((source, at) => `namespace n${at} {\n${source}\n}\nusing namespace n${at};`).join('\n');
}

/** The sources of kernels for both devices. */
export function inOneSource(kernels: readonly { readonly source: string }[]): string {
  return `#ifdef MILLRACE_CPU_DEVICE\n#include <barrier_regions.h>\n#endif\n${inNamespaces(kernels.map(({ source }) => source))}`;
}

/** What a source of the SIMD form begins with: what the shim's headers are told, and which of them it needs. */
const HEAD = /^(?:#define MR_\w+ \d+\n|#include <\w+\.h>\n)*/;

/** Builds kernels with different entries, those with equal heads and options in one image. The image of each. */
export async function builtTogether(images: Images, specs: readonly BuildSpec[]): Promise<readonly string[]> {
  const groups = new Map<string, BuildSpec[]>();
  for (const spec of specs) {
    const facts = JSON.stringify([spec.fmad, spec.simdSource && HEAD.exec(spec.simdSource)![0]]);
    groups.set(facts, [...(groups.get(facts) ?? []), spec]);
  }
  const paths = new Map<BuildSpec, string>();
  const build = async (group: readonly BuildSpec[]): Promise<void> => {
    const { simdSource, ...first } = group[0]!;
    const [head = ''] = HEAD.exec(simdSource ?? '')!;
    const lanes = `${head}${inNamespaces(group.map((spec) => (spec.simdSource ?? '').slice(head.length)))}`;
    const path = await images.built(
      { ...first, source: inOneSource(group), ...(simdSource !== undefined && { simdSource: lanes }) },
      group.map(({ entry }) => entry),
    );
    for (const spec of group) paths.set(spec, path);
  };
  await Promise.all([...groups.values()].map(build));
  return specs.map((spec) => paths.get(spec)!);
}
