// Results as messages of a JetStream stream, each id once.
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import type { OpenedSink, QueueSink } from './adapter.js';
import type { NatsConnection } from './connections.js';
import { asked, checkNatsConnection, openNats, streamOf } from './nats-client.js';

/** Options of `natsSink`. */
export interface NatsSinkOptions<R = unknown> {
  /** A connection of `@nats-io/transport-node`, which stays open, or the options of its `connect`. */
  readonly connection: NatsConnection;
  /** Where results are published. A stream keeps it already. `{id}` in it is replaced by the item's id. */
  readonly subject: string;
  /**
   * 'window' (default): a result is dropped if one with its id was stored within the stream's `duplicate_window`, which is 2 minutes unless the stream
   * says otherwise. 'subject': a result is dropped if the stream has a message with its subject, for which the subject has `{id}`.
   */
  readonly once?: 'window' | 'subject';
  /** Makes the message's bytes or text of a result. Default: bytes and strings as they are, anything else as JSON. */
  readonly encode?: (result: R) => Uint8Array | string;
}

/** The server's answer to a message whose subject is not empty: code of JetStream. */
const WRONG_LAST_SEQUENCE = [10071, 10164];
const NAMES = ['connection', 'subject', 'once', 'encode'];

/**
 * Stores results in a stream of NATS JetStream, for `overlapQueue`: each with its item's id as `Nats-Msg-Id`, by which the server drops a second one.
 * Throws ArgumentError for a bad option. The run rejects with an UnavailableError without the packages, a server or a stream of the subject.
 * @example natsSink({ connection: { servers: '127.0.0.1:4222' }, subject: 'thumbnails.{id}', once: 'subject' })
 */
export function natsSink<R = unknown>(opts: NatsSinkOptions<R>): QueueSink<R> {
  if (arguments.length > 1) refuseSurplus('natsSink', arguments, 1);
  checkOptionNames(opts, NAMES);
  const { connection, subject, once = 'window', encode = asBytes } = opts;
  checkNatsConnection(connection);
  if (typeof subject !== 'string' || subject === '') throw badArgument('subject', subject, `The subject (${show(subject)}) is not a name.`);
  if (once !== 'window' && once !== 'subject')
    throw badArgument('once', once, `The option once (${show(once)}) is neither 'window' nor 'subject'.`);
  const isBySubject = once === 'subject';
  if (isBySubject && !subject.includes('{id}'))
    throw badArgument('subject', subject, `With once: 'subject', each item has a subject: ${show(subject)} has no {id}.`);
  return {
    open: async (): Promise<OpenedSink<R>> => {
      const client = await openNats(connection);
      try {
        const { config } = await streamOf(client, subjectOf(subject, 'id'));
        return {
          remembersMs: isBySubject ? Number.POSITIVE_INFINITY : config.duplicate_window / 1e6,
          store: async (id, result) => {
            const expect = isBySubject ? { expect: { lastSubjectSequence: 0 } } : {};
            const payload = encode(result);
            try {
              const answer = await asked(() => client.js.publish(subjectOf(subject, id), payload, { msgID: id, ...expect }));
              return !answer.duplicate;
            } catch (error) {
              if (isBySubject && WRONG_LAST_SEQUENCE.includes((error as { readonly code?: number }).code ?? 0)) return false;
              throw error;
            }
          },
          close: client.close,
        };
      } catch (error) {
        await client.close();
        throw error;
      }
    },
  };
}

/** Characters that separate or stand for parts of a subject, and spaces, are replaced in the id. */
function subjectOf(subject: string, id: string): string {
  return subject.replaceAll('{id}', () => encodeURIComponent(id).replaceAll(/[.*>]/g, (char) => `%${char.charCodeAt(0).toString(16)}`));
}

function asBytes(result: unknown): Uint8Array | string {
  if (typeof result === 'string') return result;
  if (ArrayBuffer.isView(result)) return new Uint8Array(result.buffer, result.byteOffset, result.byteLength);
  return JSON.stringify(result);
}
