// How the library's objects look in logs: one line for `util.inspect`, a few facts for `JSON.stringify`. Each of them
// refers to its device and the device to all of them, so without this one array would print everything, and JSON refuse.

const INSPECT: symbol = Symbol.for('nodejs.util.inspect.custom');

/** Gives the objects of a class their line and their facts. */
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
