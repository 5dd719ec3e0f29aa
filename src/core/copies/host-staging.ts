// Bytes between memory of two backends, which no record names both of: through page-locked memory, in pieces. While a
// piece leaves the one device the piece before arrives at the other, and two stages are enough for that. A piece that
// could not leave poisons its stage, and so what it would have arrived at.
// Thread: owner.
import { CopyFlag } from '../../protocol/protocol.gen.js';
import type { StreamContext } from '../device/stream-context.js';
import type { Point } from '../timeline/timeline.js';
import { flatRegion, type Region } from './region.js';
import type { Relay } from './relay.js';
import { HostStage } from './upload.js';

/** Large enough that the bus and not the handover counts. */
const PIECE_BYTES = 32 * 2 ** 20;
/** Of one copy: beyond it pieces are larger. Each takes a few records on both streams. */
const MAX_PIECES = 64;
const RECORDS_OF_A_PIECE = 2;

/** Records on each of the two streams. */
export function recordsThroughHost(byteLength: number): number {
  return Math.ceil(byteLength / pieceOf(byteLength)) * RECORDS_OF_A_PIECE;
}

function pieceOf(byteLength: number): number {
  return Math.max(PIECE_BYTES, Math.ceil(byteLength / MAX_PIECES));
}

/** After room was reserved. */
export function submitThroughHost(
  relay: Relay,
  leaving: StreamContext,
  arriving: StreamContext,
  dst: Region,
  src: Region,
  byteLength: number,
): void {
  const pieceBytes = pieceOf(byteLength);
  const pieces = Math.ceil(byteLength / pieceBytes);
  // The device that cares whether memory is page-locked.
  const { core } = leaving.core.channel.backend === 'cuda' ? src.storage : dst.storage;
  const stages: HostStage[] = [];
  // Alone, a piece that is everything says so by its size.
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
      // Its stage is free when the piece before last has arrived.
      const from = flatRegion(src.storage, src.offset + at, bytes);
      left = relay.move(leaving, half, from, bytes, arrived[piece - 2] ?? left, CopyFlag.STAGED);
      const flags = CopyFlag.STAGED | (isWhole && piece === 0 ? CopyFlag.FIRST_PIECE : 0);
      arrived.push(relay.move(arriving, flatRegion(dst.storage, dst.offset + at, bytes), half, bytes, left, flags));
    }
  } finally {
    for (const stage of stages) stage.giveBack();
  }
}
