// Copies between memory of two backends, which one record cannot name: through page-locked memory, in pieces. While one piece
// is copied from the source device, the piece before is copied to the destination, which needs two stages. A piece whose first
// copy fails poisons its stage, so its second copy fails too and poisons the destination.
// Thread: owner.
import { CopyFlag } from '../../protocol/protocol.gen.js';
import type { StreamContext } from '../device/stream-context.js';
import type { Point } from '../timeline/timeline.js';
import { flatRegion, type Region } from './memory-region.js';
import type { MultiStepCopy } from './multi-step-copy.js';
import { HostStage } from './upload.js';

/** Large enough that the time of the bus dominates that of the records. */
const PIECE_BYTES = 32 * 2 ** 20;
/** The most pieces of a copy; a larger copy has larger pieces. Each piece takes a few records on both streams. */
const MAX_PIECES = 64;
const RECORDS_OF_A_PIECE = 2;

/** The number of records on each of the two streams. */
export function recordsThroughHost(byteLength: number): number {
  return Math.ceil(byteLength / pieceOf(byteLength)) * RECORDS_OF_A_PIECE;
}

function pieceOf(byteLength: number): number {
  return Math.max(PIECE_BYTES, Math.ceil(byteLength / MAX_PIECES));
}

/** Submits the copy. Reserve room for `recordsThroughHost` records first. */
export function submitThroughHost(
  steps: MultiStepCopy,
  leaving: StreamContext,
  arriving: StreamContext,
  dst: Region,
  src: Region,
  byteLength: number,
): void {
  const pieceBytes = pieceOf(byteLength);
  const pieces = Math.ceil(byteLength / pieceBytes);
  // Stage in memory that is page-locked for the GPU; the CPU device needs no page-locking.
  const { core } = leaving.core.channel.backend === 'cuda' ? src.storage : dst.storage;
  const stages: HostStage[] = [];
  // A single piece that covers the whole array needs no flag: its size shows it.
  const isWhole = pieces > 1 && dst.storage.base + dst.offset === 0 && byteLength === dst.storage.byteLength;
  const arrived: Point[] = [];
  let left: Point | undefined;
  try {
    while (stages.length < Math.min(2, pieces)) stages.push(HostStage.locked(core, Math.min(pieceBytes, byteLength)));
    for (let piece = 0; piece < pieces; piece++) {
      const at = piece * pieceBytes;
      const bytes = Math.min(pieceBytes, byteLength - at);
      const { region } = stages[piece % 2] as HostStage;
      const half = flatRegion(region.storage, 0, bytes);
      // The stage is free when the piece before the previous one has arrived.
      const from = flatRegion(src.storage, src.offset + at, bytes);
      left = steps.move(leaving, half, from, bytes, arrived[piece - 2] ?? left, CopyFlag.STAGED);
      const flags = CopyFlag.STAGED | (isWhole && piece === 0 ? CopyFlag.FIRST_PIECE : 0);
      arrived.push(steps.move(arriving, flatRegion(dst.storage, dst.offset + at, bytes), half, bytes, left, flags));
    }
  } finally {
    for (const stage of stages) stage.giveBack();
  }
}
