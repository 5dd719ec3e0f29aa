// An error as one line of text, for dead letters: name, message and stack as JSON.

/** Headers of messages are short. */
const MOST_STACK = 4000;

/** What a dead letter tells of an error. */
export interface ErrorFacts {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
}

export function errorFacts(error: Error): ErrorFacts {
  const { name, message, stack } = error;
  const { code } = error as { readonly code?: unknown };
  return {
    name,
    message: message.slice(0, MOST_STACK),
    ...(typeof code === 'string' ? { code } : {}),
    ...(stack === undefined ? {} : { stack: stack.slice(0, MOST_STACK) }),
  };
}

/** ASCII: other characters do not pass through every client's headers. */
export function errorText(error: Error): string {
  return JSON.stringify(errorFacts(error)).replaceAll(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
