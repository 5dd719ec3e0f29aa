// Turns a batch of copies into one record. (A graph has each of them as a node.) Bytes of ordinary arrays go through page-locked memory.
// Thread: owner.
import { CopyFlag } from '../../protocol/protocol.gen.js';
import type { StreamContext } from '../device/stream-context.js';
import type { HostCompletion } from '../waits/host-completion.js';
import type { CopyPlan } from './copy-plan.js';
import type { Region } from './memory-region.js';
import { copyToHost, type Moved } from './transfer.js';
import { HostStage } from './upload.js';

/** Checked copies of at least one byte each, which may run in any order. */
export interface BatchedPlan {
  readonly copies: readonly CopyPlan[];
  /** Of all copies. */
  readonly byteLength: number;
  readonly label: string | undefined;
}

/** A copy between memory that the device can access. */
interface Move {
  readonly dst: Region;
  readonly src: Region;
  readonly byteLength: number;
}

/** `stream.copyBatch`. */
export function submitBatch(site: StreamContext, { copies, label }: BatchedPlan): Moved {
  const { core, timeline } = site;
  if (copies.length === 0) return { ticket: core.submit(timeline, core.encoder.nop(timeline.slot)), parts: undefined };
  const sources: HostStage[] = [];
  const targets: { readonly stage: HostStage; readonly into: Uint8Array }[] = [];
  try {
    const moves = copies.map(({ dst, src, byteLength: bytes }): Move => {
      if (src.region === undefined) {
        const stage = HostStage.snapshot(core, src.bytes);
        sources.push(stage);
        return { dst: dst.region as Region, src: stage.region, byteLength: bytes };
      }
      if (dst.region !== undefined) return { dst: dst.region, src: src.region, byteLength: bytes };
      const stage = HostStage.locked(core, bytes);
      targets.push({ stage, into: dst.bytes });
      return { dst: stage.region, src: src.region, byteLength: bytes };
    });
    const ticket = submitMoves(site, moves, label);
    let hostCompletion: HostCompletion | undefined;
    if (targets.length > 0) hostCompletion = copyToHost(site, targets.splice(0), { ticket, parts: undefined });
    return { ticket, parts: undefined, hostCompletion };
  } finally {
    // After the record, or at once if it was refused.
    for (const stage of sources) stage.giveBack();
    for (const { stage } of targets) stage.giveBack();
  }
}

function submitMoves(site: StreamContext, moves: readonly Move[], label: string | undefined): number {
  const { core, timeline } = site;
  const record = core.tracker.begin(site);
  for (const { dst, src } of moves) {
    record.add(dst.storage, dst.start, dst.end, true);
    record.add(src.storage, src.start, src.end, false);
  }
  return record.submit('copy', label, () => {
    const { batches } = core.encoder;
    for (let n = 0; n < moves.length; n++) {
      const { dst, src, byteLength } = moves[n] as Move;
      const flags = dst.storage.isPinned || src.storage.isPinned ? CopyFlag.PINNED : 0;
      const [to, from] = [dst.storage.base + dst.offset, src.storage.base + src.offset];
      batches.copy(n, core.channel.id, dst.storage, to, src.storage, from, byteLength, flags);
    }
    return batches.batch(timeline.slot, moves.length);
  });
}
