/** Whole numbers from 0 to below a limit, by xorshift32: a run that fails is repeated by its seed. */
export function randomBelow(seed) {
  let state = Number(seed) >>> 0 || 1;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}
