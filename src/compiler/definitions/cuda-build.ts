// Describes what to build from CUDA C++ source.
import type { BuildSpec, ParameterChecks } from '../../core/channel/build-spec.js';
import { namesGrid, syncsGrid } from '../../cuda-cpp/select/grid-barriers.js';
import { withoutHostCode } from '../../cuda-cpp/select/host-code.js';
import { withApartLinkage, withoutManaged } from '../../cuda-cpp/select/dialect.js';
import { withSeparateNames } from '../../cuda-cpp/select/overloads.js';
import { mayLaunch } from '../../cuda-cpp/read/global-functions.js';
import { withoutComments } from '../../cuda-cpp/read/tokens.js';
import { type CallSite, placeOf, userLine } from '../diagnostics/diagnostics.js';
import { refuseArgument, shortened } from './arguments.js';
import { readSource } from './source-files.js';

/** CUDA C++ source, without host code. */
export interface GivenSource {
  readonly source: string;
  /** With the host's code. */
  readonly original: string;
  /** The source without comments. */
  readonly text: string;
  readonly options: readonly string[];
  readonly site: CallSite;
  /** C++ names of the kernels that one name meant in the original, by that name. */
  readonly overloads: ReadonlyMap<string, readonly string[]>;
  /** C++ names that several kernels still have. */
  readonly shared: ReadonlySet<string>;
  /** The `deviceRuntime` option. */
  readonly deviceRuntime?: boolean | undefined;
}

/** A kernel of the source. */
export interface CheckedEntry {
  /** How the source names it at its end, with template arguments; undefined for a C name, which is its symbol. */
  readonly path?: string;
  /** The checks that only a compiler can make. */
  readonly checks?: ParameterChecks;
}

/** Reads the source, puts its own headers into it, removes host code and makes managed variables those of the device. */
export function readGivenSource(
  given: unknown,
  file: unknown,
  options: readonly string[],
  caller: CallSite,
): Omit<GivenSource, 'options' | 'deviceRuntime'> {
  const { source: original, site } = readSource(given, file, options, caller);
  const present = withoutManaged(withoutHostCode(withApartLinkage(original)));
  const text = withoutComments(present);
  const { source, overloads, shared } = withSeparateNames(present, text);
  return { source, original, text: source === present ? text : withoutComments(source), site, overloads, shared };
}

/** The build of one kernel. */
export function kernelSpec(given: GivenSource, name: string, { path, checks }: CheckedEntry): BuildSpec {
  const plain = (path ?? name)
    .replace(/\s*<.*$/s, '')
    .split('::')
    .at(-1)!;
  return {
    ...sourceSpec(given, name),
    entry: name,
    ...(path !== undefined && { path }),
    ...(syncsGrid(given.text, plain) && { syncsGrid: true }),
    ...(checks && { parameterChecks: checks }),
  };
}

export function checkedOptions(options: readonly string[]): readonly string[] {
  if (!Array.isArray(options) || !options.every((option) => typeof option === 'string'))
    refuseArgument(`options (${shortened(options)}) must be an array of strings.`, 'options', options);
  for (const option of options) {
    // The compiler receives the option as a C string, which ends at a NUL.
    if (option.includes('\0'))
      refuseArgument(`The option (${shortened(option).replaceAll('\0', '\\0')}) contains a NUL character.`, 'options', options);
  }
  return Object.freeze([...options]);
}

const OF_BLOCKS = /\b(?:__shared__|__syncthreads\w*|\w+_sync|cooperative_groups)\b/;

/** A build without the fields that select one kernel. `name` appears in messages. */
export function sourceSpec(
  { source, original, text, options, site, deviceRuntime = mayLaunch(text) }: GivenSource,
  name: string,
): Omit<BuildSpec, 'entry'> {
  const lines = placeOf(source, source.length).line;
  // A grid barrier in a launch that is not cooperative is reported like a failed assertion.
  const isAsserting = /\bassert\s*\(/.test(text) || namesGrid(text);
  return {
    source,
    ...(original !== source && { original }),
    name,
    options,
    fmad: true,
    isBounded: isBounded(text),
    isChecked: false,
    isOfBlocks: OF_BLOCKS.test(text),
    ...(deviceRuntime && { isLaunching: true }),
    ...(isAsserting && { isAsserting, assertions: assertionsOf(source, text, site) }),
    // Lines are numbered as if the source began on the line of the call, where template literals usually begin.
    mapping: {
      file: site.file ?? name,
      lines: Array.from({ length: lines }, (_unused, at) => userLine(site, at + 1)),
      ...(site.included && { of: site.included.of, files: site.included.files }),
    },
  };
}

/** Message for an assertion of line 0, which is the grid barrier's own. */
const IS_COOPERATIVE = 'this_grid().is_valid(), which a launch with { cooperative: true } makes true,';

/** How messages name a line of the source, from 1. */
export function linePlace({ included }: CallSite, number: number): string {
  const file = included?.files[(included.of[number - 1] ?? 0) - 1];
  return `line ${included?.lines[number - 1] ?? number} of ${file === undefined ? 'the source' : file.replace(/^.*\//, '')}`;
}

/** For each line of the source, from 1: the asserted condition, if it ends on the line, and the line number. */
function assertionsOf(source: string, text: string, site: CallSite): string[] {
  const given = source.split('\n');
  const placed = (number: number): string => linePlace(site, number);
  return ['', ...text.split('\n')].map((line, number) => {
    if (number === 0) return IS_COOPERATIVE;
    const call = /\bassert\s*\(/.exec(line);
    if (call === null) return `on ${placed(number)}`;
    const from = call.index + call[0].length;
    let [to, depth] = [from, 1];
    for (; to < line.length; to++) {
      if (line[to] === '(') depth++;
      else if (line[to] === ')' && --depth === 0) break;
    }
    return `${shortened(given[number - 1]!.slice(from, to).trim())} (${placed(number)})`;
  });
}

/** True only when tokens prove it: no loop, no jump, no macro that may hide one, no call that may recurse or wait. */
function isBounded(text: string): boolean {
  return (
    !text.includes('<<<') &&
    !/\b(?:for|while|do|goto|asm|__device__|__syncthreads\w*|\w+_sync|template|operator)\b|^[ \t]*#/m.test(text) &&
    (text.match(/__global__/g) ?? []).length === 1
  );
}
