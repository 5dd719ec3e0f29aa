// Shortens random programs that differ from the model, and shows them.
import type { FailingBench } from './failing-bench.js';
import { textOf, type FailingProgram } from './failing-programs.js';
import { differencesOf } from './failing-run.js';

/** Removes steps as long as a program still differs in one of `times` runs. */
export async function shortened(bench: FailingBench, program: FailingProgram, times: number): Promise<readonly [FailingProgram, string]> {
  const first = async (one: FailingProgram): Promise<string | undefined> => {
    for (let n = 0; n < times; n++) {
      const differences = await differencesOf(bench, one);
      if (differences.length > 0) return differences.join('\n');
    }
    return undefined;
  };
  let [least, difference] = [program, 'not again'];
  for (let n = program.steps.length - 1; n >= 0; n--) {
    const without = <T>(list: readonly T[]): readonly T[] => list.filter((_, at) => at !== n);
    const candidate = { ...least, steps: without(least.steps), asks: without(least.asks) };
    const seen = await first(candidate);
    if (seen !== undefined) [least, difference] = [candidate, seen];
  }
  if (!least.steps.some(({ kind }) => kind === 'graph')) least = { ...least, graphs: [] };
  return [least, (await first(least)) ?? difference];
}

/** The program, what was expected and what was seen. */
export function reportOf(program: FailingProgram, difference: string): string {
  return `${textOf(program)}\n--- differs:\n${difference}`;
}
