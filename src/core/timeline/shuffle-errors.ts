// Makes the error of a launch in which threads of a tile of more than a warp called `shfl` with different source ranks.
// Thread: owner.
import type { FailureRecord } from '../../protocol/reports.js';
import { LaunchError } from '../base/errors.js';
import { at, type LocatedKernel, placesOf, reasonOf, threadAt } from './race-errors.js';

/** The promise never rejects. */
export async function shuffleError(
  fault: NonNullable<FailureRecord['fault']>,
  kernel: LocatedKernel | undefined,
  where: string,
  facts: object,
): Promise<LaunchError> {
  const [firstThread, secondThread, secondLine] = fault.thread;
  const source = await placesOf(kernel, { lines: [fault.index, secondLine] });
  const [first, second] = source.lines;
  const [firstRank, secondRank] = fault.places;
  const message =
    `Kernel ${kernel?.name ?? 'unknown'} ${where} gives shfl of a tile different source ranks in block (${fault.block.join(', ')}): ` +
    `${threadAt(firstThread)} gives ${firstRank}${at(first)}, and ${threadAt(secondThread)} gives ${secondRank}${at(second)}. ` +
    `In a tile of more than 32 threads, all threads give the same rank; a GPU would wait without end.${reasonOf(source)}`;
  return new LaunchError('ERR_MILLRACE_LAUNCH', message, facts);
}
