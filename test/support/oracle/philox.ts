// Philox 4x32-10, as cuRAND draws from it after curand_init(seed, sequence, 0).

/** A generator, whose calls give the words of its sequence one after the other. */
export function philox(seed: number, sequence: number): () => number {
  let drawn = 0;
  let words: readonly number[] = [];
  return () => {
    if (drawn % 4 === 0) words = block(seed, sequence, drawn / 4);
    return words[drawn++ % 4]!;
  };
}

function block(seed: number, sequence: number, number: number): readonly number[] {
  let [a, b, c, d] = [number, 0, sequence, 0];
  let [key, more] = [seed, 0];
  for (let round = 0; round < 10; round++) {
    const first = 0xd251_1f53n * BigInt(a);
    const second = 0xcd9e_8d57n * BigInt(c);
    [a, b] = [(Number(second >> 32n) ^ b ^ key) >>> 0, Number(second & 0xffff_ffffn)];
    [c, d] = [(Number(first >> 32n) ^ d ^ more) >>> 0, Number(first & 0xffff_ffffn)];
    key = (key + 0x9e37_79b9) >>> 0;
    more = (more + 0xbb67_ae85) >>> 0;
  }
  return [a, b, c, d];
}
