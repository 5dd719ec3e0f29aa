// What the owner of a CPU pool and its threads send each other. What a task throws is sent as plain data: postMessage keeps neither the
// classes of errors nor their properties, and refuses whatever holds a function.
import { types } from 'node:util';
import type { MessagePort, Transferable } from 'node:worker_threads';
import * as errors from '../core/base/errors.js';

/** A thrown value as plain data. */
export type EncodedThrow =
  | { readonly kind: 'value'; readonly value: unknown }
  | {
      readonly kind: 'error';
      /** The nearest class that this thread and the other one know. */
      readonly className: string;
      /** The classes of the library whose instance it is. */
      readonly brand: readonly string[] | undefined;
      readonly name: string;
      readonly message: string;
      readonly stack: string | undefined;
      readonly cause: EncodedThrow | undefined;
      /** The errors of an AggregateError. */
      readonly errors: readonly EncodedThrow[] | undefined;
      /** Its own properties, and `code`. */
      readonly properties: Readonly<Record<string, unknown>>;
    };

/** What a thread of the pool is asked to run. */
export interface TaskCall {
  /** The absolute path of the user's module. */
  readonly path: string;
  /** The export to call. */
  readonly name: string;
  readonly task: unknown;
  /** Set to 1 when the call begins: a call that never began runs again if its thread ends. */
  readonly begun: Int32Array;
  /** Where the thread posts its answers from now on; absent for a thread that has such a port. */
  readonly answers: MessagePort | undefined;
}

export type TaskAnswer =
  | { readonly kind: 'result'; readonly value: unknown }
  | { readonly kind: 'thrown'; readonly thrown: EncodedThrow }
  | { readonly kind: 'no such export' };

/** The parts of a value that `Piscina.move` returned. */
export function moved(value: unknown): { readonly value: unknown; readonly transferList: Transferable[] } {
  const isMoved =
    typeof value === 'object' &&
    value !== null &&
    Object.getOwnPropertySymbols(value).some((symbol) => symbol.description === 'Piscina.kMovable');
  if (!isMoved) return { value, transferList: [] };
  const parts = value as Readonly<Record<symbol, unknown>>;
  const list = [parts[Symbol.for('Piscina.transferable')] as Transferable].flat();
  return { value: parts[Symbol.for('Piscina.valueOf')], transferList: list };
}

const BRAND: unique symbol = Symbol.for('millrace.errors') as never;
const BUILT_IN: Readonly<Record<string, object>> = Object.fromEntries(
  [Error, AggregateError, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((type) => [
    type.name,
    type.prototype,
  ]),
);
const ENCODED_APART: readonly string[] = ['name', 'message', 'stack', 'cause', 'errors'];
/** A chain of causes may be a circle. */
const MAX_CAUSES = 20;

/** Never throws. */
export function encodeThrow(value: unknown, causes: number = 0): EncodedThrow {
  try {
    if (!types.isNativeError(value) && !(value instanceof Error)) return { kind: 'value', value: cloneable(value) };
    return encodeError(value, causes);
  } catch {
    const message = `The task threw a value that cannot be sent to another thread: ${textOf(value)}`;
    return encodeThrow(new Error(message));
  }
}

function encodeError(error: Error, causes: number): EncodedThrow {
  const inner = (value: unknown): EncodedThrow => encodeThrow(value, causes + 1);
  const brand = (error as { [BRAND]?: readonly string[] })[BRAND];
  const properties: Record<string, unknown> = {};
  for (const key of ['code', ...Object.keys(error)]) {
    if (ENCODED_APART.includes(key) || !(key in error)) continue;
    try {
      properties[key] = cloneable((error as unknown as Record<string, unknown>)[key]);
    } catch {
      // A property that cannot be sent is left out.
    }
  }
  return {
    kind: 'error',
    className: classOf(error, brand),
    brand,
    name: textOf(error.name),
    message: textOf(error.message),
    stack: typeof error.stack === 'string' ? error.stack : undefined,
    cause: 'cause' in error && causes < MAX_CAUSES ? inner(error.cause) : undefined,
    errors: error instanceof AggregateError && causes < MAX_CAUSES ? error.errors.map(inner) : undefined,
    properties,
  };
}

function classOf(error: Error, brand: readonly string[] | undefined): string {
  if (error instanceof DOMException) return 'DOMException';
  for (let at: unknown = Object.getPrototypeOf(error); at !== null; at = Object.getPrototypeOf(at)) {
    const { name } = (at as Error).constructor;
    if (name in BUILT_IN || (brand?.includes(name) === true && name in errors)) return name;
  }
  return 'Error';
}

/** Rebuilds what the task threw. */
export function decodeThrow(thrown: EncodedThrow): unknown {
  if (thrown.kind === 'value') return thrown.value;
  const { className, message, name, brand, stack, properties } = thrown;
  if (className === 'DOMException') return withFacts(new DOMException(message, name), { stack, cause: thrown.cause });
  const type = (errors as unknown as Readonly<Record<string, { readonly prototype: object } | undefined>>)[className];
  const error = Object.setPrototypeOf(new Error(message), BUILT_IN[className] ?? type?.prototype ?? Error.prototype) as Error;
  Object.assign(error, properties);
  if (error.name !== name) withFacts(error, { name });
  if (brand !== undefined) Object.defineProperty(error, BRAND, { value: brand, configurable: true });
  if (thrown.errors !== undefined) withFacts(error, { errors: thrown.errors.map(decodeThrow) });
  return withFacts(error, { stack, cause: thrown.cause });
}

function withFacts(error: Error, facts: { readonly cause?: EncodedThrow | undefined; readonly [name: string]: unknown }): Error {
  for (const [name, value] of Object.entries(facts)) {
    if (value === undefined) continue;
    const fact = name === 'cause' ? decodeThrow(value as EncodedThrow) : value;
    Object.defineProperty(error, name, { value: fact, configurable: true, writable: true });
  }
  return error;
}

/** Returns the value. Throws a DataCloneError if postMessage would. */
function cloneable<T>(value: T): T {
  structuredClone(value);
  return value;
}

function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return `a ${typeof value}`;
  }
}
