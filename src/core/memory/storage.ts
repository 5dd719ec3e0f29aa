// The memory behind arrays: a part of what a handle names, with its accesses (TrackedMemory) and its name in messages.
// Thread: owner.
import { type MemorySpace, PeerWhat } from '../../protocol/protocol.gen.js';
import { callSite } from '../base/call-site.js';
import type { DeviceCore } from '../device/device-core.js';
import type { DType } from '../elements/dtype.js';
import type { Timeline } from '../timeline/timeline.js';
import { TrackedMemory } from '../ordering/tracked-memory.js';

/** Of so many arrays of other sizes than `LiveMemory.largeBytes` the line is known as well: a program that forgets arrays mostly forgets early ones. */
let lines = 256;

export class Storage extends TrackedMemory {
  readonly space: MemorySpace;
  readonly handle: number;
  /** Where it starts in what `handle` names, in bytes. */
  readonly base: number;
  /** The device whose handle it is. */
  readonly core: DeviceCore;
  isDisposed: boolean = false;
  /** The scope whose end disposed it, for messages. */
  endedBy: { readonly name: string; readonly remedy: string } | undefined = undefined;
  /** It is the memory of a pinned array. */
  isPinned: boolean = false;
  /** Its array belongs to a lane's item, which refers to it: no finalizer has to find it. */
  isHeld: boolean = false;
  /** The grant with which kernels of other devices may use it; undefined: none lets them. */
  grant: PeerWhat | undefined = PeerWhat.POOL;
  /** Where `LiveMemory` lists it, or -1. */
  livePlace: number = -1;
  /** The handle names no memory yet. */
  isUnbound: boolean = false;
  /** Its address, a token of it or a texture was given out, so the thread does not know of all uses. */
  isExposed: boolean = false;
  /** How many graphs and captures keep the memory after its array was disposed. */
  #keepers = 0;
  #whenReleased: (() => void) | undefined = undefined;
  #dtype: DType | undefined = undefined;
  #shape: readonly number[] = [];
  /** Where user code made it, for messages about memory. */
  #place: string | undefined = undefined;

  constructor(space: MemorySpace, handle: number, base: number, byteLength: number, core: DeviceCore) {
    super(byteLength);
    this.core = core;
    this.space = space;
    this.handle = handle;
    this.base = base;
  }

  /** The name of the memory in messages. */
  get label(): string {
    return this.#dtype === undefined ? `${this.byteLength} bytes` : `${this.#dtype}[${this.#shape.join(', ')}]`;
  }

  /** For messages about memory. */
  get description(): string {
    const at = this.madeAt ?? this.#place;
    const place = at === undefined ? '' : `, made at ${at}`;
    return this.#dtype === undefined ? `${this.label}${place}` : `${this.label} (${this.byteLength} bytes${place})`;
  }

  /** Everything that used the memory has finished, with its failures known, and nothing else can use it. */
  get isUnused(): boolean {
    if (this.isExposed || this.isUnbound || this.#keepers > 0 || this.graphUses.length > 0) return false;
    return this.everyUse((timeline, ticket) => {
      if (!this.core.timelines.has(timeline) || !timeline.hasReached(ticket)) return false;
      timeline.noteFailures(ticket);
      return timeline.known >= ticket;
    });
  }

  override get isGone(): boolean {
    return this.isDisposed;
  }

  /** A capture or graph uses the memory: `free` waits for `release`. */
  keep(): void {
    this.#keepers++;
  }

  /** Ends one `keep`. */
  release(): void {
    this.#keepers--;
    if (this.#keepers > 0) return;
    this.#whenReleased?.();
    this.#whenReleased = undefined;
  }

  /** The array was disposed: calls `free` when no capture and no graph uses the memory any more. */
  freeBy(free: () => void): void {
    this.isDisposed = true;
    this.core.tracker.interrupt();
    if (this.#keepers > 0) this.#whenReleased = free;
    else free();
  }

  /** Ends this, and returns the same memory without its past: for another array of a lane, if `isUnused`. */
  successor(): Storage {
    const next = new Storage(this.space, this.handle, this.base, this.byteLength, this.core);
    next.isPinned = this.isPinned;
    next.isHeld = true;
    next.#place = this.#place;
    this.core.live.replace(this, next);
    this.freeBy(() => undefined);
    return next;
  }

  /** Gives the memory of the device back, after all uses. */
  free(): void {
    if (this.isUnbound) this.core.handles.memory.giveBackNow(this.handle);
    else {
      const { core, handle, onlyUser } = this;
      core.live.delete(this);
      const isUrgent = core.live.isAwaited;
      if (isUrgent || onlyUser === undefined || !core.frees.freeBehind(onlyUser, handle))
        core.frees.free(handle, [...this.uses()], isUrgent);
    }
  }

  /** As `free`, after what this stream of the device was given so far. */
  freeOn(timeline: Timeline): void {
    this.core.live.delete(this);
    this.core.frees.freeOn(timeline, this.handle);
  }

  /** The storage is the memory of this array. */
  belongTo({ dtype, shape }: { readonly dtype: DType; readonly shape: readonly number[] }): void {
    this.#dtype = dtype;
    this.#shape = shape;
    if (this.madeAt !== undefined || this.#place !== undefined) return;
    if (this.core.isChecked) this.madeAt = callSite();
    else if (this.byteLength >= this.core.live.largeBytes || lines-- > 0) this.#place = callSite();
  }
}
