// What sources and sinks connect by. In a file of its own, so that the declarations of the package name no type of a client.

/** A connection of `@nats-io/transport-node`, which stays open, or the options of its `connect`. */
export type NatsConnection =
  | { readonly isClosed: () => boolean; readonly publish: (...args: never[]) => void }
  | { readonly servers?: string | readonly string[]; readonly [option: string]: unknown };

/** An instance of ioredis, which stays open, or its options, as BullMQ's `connection`. */
export type BullmqConnection = object;
