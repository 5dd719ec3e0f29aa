// What a queue's server has to offer for `overlapQueue`. The adapters for NATS JetStream and BullMQ implement it; a program may bring another.
//
// The server keeps an item until it is acknowledged, and delivers it again when that has not happened within `ackWaitMs`. An adapter's method that
// rejects with an UnavailableError says that the server does not answer now; any other error is final.

/** One delivery of an item, as a stage sees it. */
export interface QueueItem<T = unknown> {
  /** By which its result is stored once: what the producer gave, else the name of the queue and the server's number. The same in each delivery. */
  readonly id: string;
  /** What the item holds. Throws what `decode` throws. */
  readonly data: T;
  /** 1 for the first delivery. */
  readonly deliveries: number;
  /** What the server's client has of it: a `JsMsg` of NATS, a `Job` of BullMQ. */
  readonly message: unknown;
}

/** One delivery, as an adapter gives it. Exactly one of `ack`, `nak` and `deadLetter` is called, unless the run gives up. */
export interface QueueDelivery<T = unknown> extends QueueItem<T> {
  /** Tells the server that the item is still worked at, so `ackWaitMs` begins again. */
  working(): Promise<void>;
  /** The item is done. Resolves when the server knows. */
  ack(): Promise<void>;
  /** Gives the item back: it is delivered again, to any worker, after this time. */
  nak(delayMs: number): Promise<void>;
  /** Stores the item with its error where the dead letters are, and then acknowledges it. */
  deadLetter(error: Error): Promise<void>;
}

/** A source that a run has opened. */
export interface OpenedSource<T = unknown> {
  /** An item that was not acknowledged, and not told to be worked at, for so long is delivered again. */
  readonly ackWaitMs: number;
  /** Asks for one item; undefined if none came within a second or so. */
  next(): Promise<QueueDelivery<T> | undefined>;
  /** Closes what the source has opened. */
  close(): Promise<void>;
}

/** Where items come from. */
export interface QueueSource<T = unknown> {
  /** Called once for each run. */
  open(): Promise<OpenedSource<T>>;
}

/** A sink that a run has opened. */
export interface OpenedSink<R = unknown> {
  /** For how long at least an id is known after it was stored; Infinity for as long as the result exists. */
  readonly remembersMs: number;
  /**
   * Stores the result unless one with this id is there, in one step of the server. Resolves to whether it was stored. `isRedelivered`: an earlier
   * delivery of the item may have stored one.
   */
  store(id: string, result: R, isRedelivered: boolean): Promise<boolean>;
  /** Closes what the sink has opened. */
  close(): Promise<void>;
}

/** Where results go. */
export interface QueueSink<R = unknown> {
  /** Called once for each run. */
  open(): Promise<OpenedSink<R>>;
}
