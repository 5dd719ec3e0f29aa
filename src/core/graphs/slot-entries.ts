// Where the values of a launch go in the record of a node: native/protocol/protocol.json, GraphPatch.
import { Access, CopyRecord, FillRecord, LaunchArg, LaunchRecord, Opcode, RecordHeader } from '../../protocol/protocol.gen.js';

/** The parts of a copy's record that an entry can replace, as numbers of arguments. */
export const COPY_DST = 0;
export const COPY_SRC = 1;
/** Those of a fill's. */
export const FILL_MEMORY = 0;
export const FILL_PATTERN = 1;
export const FILL_COUNT = 2;

/** Replaces a part of the record by an entry, which is a LaunchArg. The access of a launch's argument stays, but for what the entry leaves as it is. */
export function fillIn(record: Uint8Array, arg: number, entry: Uint8Array): void {
  const view = new DataView(record.buffer, record.byteOffset, record.byteLength);
  const given = new DataView(entry.buffer, entry.byteOffset, entry.byteLength);
  const [handle, value] = [given.getUint32(LaunchArg.HANDLE, true), given.getBigUint64(LaunchArg.VALUE, true)];
  switch (view.getUint16(RecordHeader.OPCODE, true)) {
    case Opcode.COPY: {
      const [handleAt, offsetAt] =
        arg === COPY_DST ? [CopyRecord.DST_HANDLE, CopyRecord.DST_OFFSET] : [CopyRecord.SRC_HANDLE, CopyRecord.SRC_OFFSET];
      view.setUint32(handleAt, handle, true);
      view.setBigUint64(offsetAt, view.getBigUint64(offsetAt, true) + value, true);
      break;
    }
    case Opcode.FILL:
      if (arg === FILL_MEMORY) view.setUint32(FillRecord.HANDLE, handle, true);
      view.setBigUint64([FillRecord.OFFSET, FillRecord.PATTERN, FillRecord.COUNT][arg] as number, value, true);
      break;
    default: {
      const to = LaunchRecord.BYTE_SIZE + arg * LaunchArg.BYTE_SIZE;
      view.setUint32(to + LaunchArg.HANDLE, handle, true);
      const access = view.getUint8(to + LaunchArg.ACCESS);
      if (access === Access.WRITE) view.setUint8(to + LaunchArg.ACCESS, access | (given.getUint8(LaunchArg.ACCESS) & Access.PART));
      view.setBigUint64(to + LaunchArg.VALUE, value, true);
    }
  }
}
