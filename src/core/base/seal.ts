// Seals of tokens, which are plain data on their way through messages: a token whose fields were changed or put together is told from one
// that `share` gave. No secret, so it is no protection against code that means to forge one.

const SEEDS = [0x811c9dc5, 0x9e3779b9];
const PRIME = 0x01000193;

/** A number of 64 bits, in hexadecimal, that other fields would hardly have. */
export function sealOf(fields: readonly unknown[]): string {
  const text = JSON.stringify(fields);
  return SEEDS.map((seed) => {
    let hash = seed;
    for (let at = 0; at < text.length; at++) hash = Math.imul((hash ^ text.charCodeAt(at)) + (hash >>> 15), PRIME);
    return (hash >>> 0).toString(16).padStart(8, '0');
  }).join('');
}
