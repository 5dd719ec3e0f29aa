// `millrace/queue`: pipelines over items of a queue's server, in any number of processes.
export { overlapQueue } from './overlap-queue.js';
export type { QueueFailure, QueueOptions, QueueReport, QueueRetries, QueueRun, QueueStage } from './queue-options.js';
export type { OpenedSink, OpenedSource, QueueDelivery, QueueItem, QueueSink, QueueSource } from './adapter.js';
export { natsSource } from './nats-source.js';
export type { NatsSourceOptions } from './nats-source.js';
export { natsSink } from './nats-sink.js';
export type { NatsSinkOptions } from './nats-sink.js';
export type { BullmqConnection, NatsConnection } from './connections.js';
export { bullmqSource } from './bullmq-source.js';
export type { BullmqSourceOptions } from './bullmq-source.js';
export { bullmqSink } from './bullmq-sink.js';
export type { BullmqSinkOptions } from './bullmq-sink.js';
