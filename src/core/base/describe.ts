// The library's objects in logs: one line for `util.inspect`, a few properties for `JSON.stringify`. Each object refers to its device and
// the device to all its objects, so without this one array would print all of them, and JSON would throw.

const INSPECT: symbol = Symbol.for('nodejs.util.inspect.custom');

/** Sets the line for `util.inspect` and the facts for `JSON.stringify` for the objects of a class. */
export function describeAs<T extends object>(prototype: T, line: (of: T) => string, facts: (of: T) => object): void {
  const method = (value: (this: T) => unknown): PropertyDescriptor => ({ value, configurable: true, writable: true });
  Object.defineProperties(prototype, {
    toJSON: method(function () {
      return facts(this);
    }),
    [INSPECT]: method(function () {
      return line(this);
    }),
  });
}
