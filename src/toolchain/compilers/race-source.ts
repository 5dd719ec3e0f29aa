// Finds the places of a fault report in a kernel's source. Of a race, the lines by addr2line, which comes with the assembler that compilers
// use, and the shared variable by the symbols of the image. Of calls, whose lines the report has, the lines of the user's file.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { BuildSpec, FaultPlaces, RacePlaces, FaultSource } from '../../core/channel/build-spec.js';
import { placeInFile, SOURCE_NAME } from '../base/diagnostics.js';
import { threadVariables } from '../base/elf-symbols.js';
import { runCompiler } from './run-compiler.js';

const TOOLS: readonly string[] = ['addr2line', 'llvm-addr2line', 'llvm-symbolizer'];
const TIMEOUT_MS = 10_000;

/** Never rejects: what cannot be found is undefined, with the reason. `specOf` gives the source, which may have to be emitted. */
export async function raceSource(image: string, specOf: () => BuildSpec, { instructions, byte }: RacePlaces): Promise<FaultSource> {
  let variable: FaultSource['variable'];
  try {
    const spec = specOf();
    if (byte !== undefined) variable = variableAt(image, byte, spec.identity !== undefined);
    // The address is that of the instruction behind the call.
    const addresses = instructions.map((address) => `0x${(address - 1).toString(16)}`);
    const output = await linesBy(image, addresses);
    const [first, second] = output.split(/^0x[\da-f]+$/m).slice(1);
    const lines = [lineOf(first, spec), lineOf(second, spec)] as const;
    const isUnknown = lines.some((line) => line === undefined);
    return { lines, reason: isUnknown ? 'the image has no line for the access' : undefined, variable };
  } catch (error) {
    return { lines: [undefined, undefined], reason: error instanceof Error ? error.message : String(error), variable };
  }
}

/** As `raceSource`, for the calls of a fault report, too. */
export async function faultSource(image: string, specOf: () => BuildSpec, places: FaultPlaces): Promise<FaultSource> {
  if (!('lines' in places)) return raceSource(image, specOf, places);
  const [first, second] = places.lines;
  const spec = specOf();
  return { lines: [placeInFile(spec, first), placeInFile(spec, second)], reason: undefined, variable: undefined };
}

/** For each address: the address, then the lines of the innermost function and of those it is inlined into. */
async function linesBy(image: string, addresses: readonly string[]): Promise<string> {
  for (const tool of TOOLS) {
    const style = tool === 'llvm-symbolizer' ? ['--output-style=GNU', '--no-demangle'] : [];
    const run = await runCompiler(tool, [...style, '-a', '-i', '-e', image, ...addresses], { timeoutMs: TIMEOUT_MS }).catch(
      () => undefined,
    );
    if (run?.exitCode === 0) return run.stdout;
  }
  throw new Error(`none of ${TOOLS.join(', ')} runs`);
}

/** The innermost line of the kernel's source; of code of this package or a header, the line that it is inlined into. */
function lineOf(frames: string | undefined, spec: BuildSpec): string | undefined {
  for (const frame of frames?.split('\n') ?? []) {
    const found = /^(.+):(\d+)(?: |$)/.exec(frame.trim());
    if (found && basename(found[1]!) === SOURCE_NAME) return placeInFile(spec, Number(found[2]));
  }
  return undefined;
}

function variableAt(image: string, byte: number, isEmitted: boolean): FaultSource['variable'] {
  try {
    const found = threadVariables(readFileSync(image)).find(({ offset, bytes }) => byte >= offset && byte < offset + bytes);
    // Names in emitted source end in an underscore.
    return found && { name: isEmitted ? found.name.replace(/_(?:\d+_)?$/, '') : found.name, byte: byte - found.offset };
  } catch {
    // The image's file is gone.
    return undefined;
  }
}
