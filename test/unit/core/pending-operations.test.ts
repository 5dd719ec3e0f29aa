// The pending operations of a stream's log, while the device finishes more of them.
import { expect, test } from 'vitest';
import type { OperationKind } from '../../../src/core/base/snapshots.js';
import { OperationLog } from '../../../src/core/timeline/operation-log.js';
import type { Timeline } from '../../../src/core/timeline/timeline.js';
import { Opcode } from '../../../src/protocol/protocol.gen.js';

const TICKETS = 6;

/** A log in which the operations of the tickets in `keptAt` are kept. `look` is called at each look at the stream and says how many tickets the device has finished. */
function logOf(keptAt: ReadonlySet<number>, look: () => number): { readonly log: OperationLog; readonly ids: readonly number[] } {
  const timeline = {
    label: 'a stream',
    last: TICKETS,
    get completed() {
      return look();
    },
    hasReached: () => false,
  };
  const log = new OperationLog(timeline as unknown as Timeline, 'cpu:0');
  const ids: number[] = [];
  for (let ticket = 1; ticket <= TICKETS; ticket++) {
    const kind: OperationKind = keptAt.has(ticket) ? 'copy' : 'launch';
    log.add(ticket, kind === 'copy' ? Opcode.COPY : Opcode.LAUNCH);
    const id = log.name(ticket, kind, undefined, undefined);
    ids.push(id);
    if (keptAt.has(ticket)) {
      const operation = {
        id,
        kind,
        stream: 'a stream',
        device: 'cpu:0',
        get isOver() {
          return look() >= ticket;
        },
      };
      log.kept.add(ticket, operation);
    }
  }
  return { log, ids };
}

test('each operation is listed once and in order, whichever looks at the stream the device finishes operations between', () => {
  for (let kept = 0; kept < 2 ** TICKETS; kept++) {
    const keptAt = new Set(Array.from({ length: TICKETS }, (_, at) => at + 1).filter((ticket) => (kept >> (ticket - 1)) & 1));
    for (let from = 0; from < 24; from++) {
      for (const step of [1, 3, TICKETS]) {
        let looks = 0;
        let isLooking = false;
        const { log, ids } = logOf(keptAt, () => {
          if (!isLooking) return 0;
          return Math.min(TICKETS, Math.max(0, ++looks - from) * step);
        });
        isLooking = true;
        const found = log.pending().map(({ operation }) => operation.id);
        const description = `kept at ${[...keptAt].join()}, ${step} tickets at a time from look ${from} on`;
        expect(found, description).toEqual(ids.slice(ids.length - found.length));
      }
    }
  }
});
