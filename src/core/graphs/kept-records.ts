// Copies of the records of a capture. Some hundreds of them share a buffer: one buffer for each took longer than the rest of a captured call,
// and V8 looked through all of them in each of its collections.
// Thread: owner.

/** The size of a buffer. */
const ROOM = 65_536;

export class KeptRecords {
  /** Where the next copies go. */
  #room: Uint8Array<ArrayBuffer> = new Uint8Array(0);

  keep(record: Uint8Array): Uint8Array<ArrayBuffer> {
    const { byteLength } = record;
    if (this.#room.byteLength < byteLength) this.#room = new Uint8Array(Math.max(byteLength, ROOM));
    const kept = this.#room.subarray(0, byteLength);
    kept.set(record);
    this.#room = this.#room.subarray(byteLength);
    return kept;
  }
}
