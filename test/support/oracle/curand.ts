// cuRAND's generators XORWOW and MRG32k3a from their definitions, in BigInt: jumps are powers of the linear map of one step.

const WORD = 0xffff_ffffn;

/** A linear map of 160 bits: the images of the single bits. */
type BitMap = readonly bigint[];

function applyMap(map: BitMap, state: bigint): bigint {
  let to = 0n;
  for (let bit = 0, rest = state; rest !== 0n; bit++, rest >>= 1n) if (rest & 1n) to ^= map[bit]!;
  return to;
}

function xorwowStep(state: bigint): bigint {
  const [first, last] = [state & WORD, state >> 128n];
  const t = first ^ (first >> 2n);
  return (state >> 32n) | (((last ^ (last << 4n) ^ t ^ (t << 1n)) & WORD) << 128n);
}

const powers: BitMap[] = [];
function xorwowPower(exponent: number): BitMap {
  while (powers.length <= exponent) {
    const last = powers.at(-1);
    powers.push(
      last ? last.map((image) => applyMap(last, image)) : Array.from({ length: 160 }, (_unused, bit) => xorwowStep(1n << BigInt(bit))),
    );
  }
  return powers[exponent]!;
}

/** The words of XORWOW after curand_init, one after the other. */
export function xorwow(seed: bigint, sequence: bigint, offset: bigint): () => number {
  const low = (1099087573n * ((seed & WORD) ^ 0xaad26b49n)) & WORD;
  const high = (2591861531n * ((seed >> 32n) ^ 0xf7dcefddn)) & WORD;
  const words = [123456789n + low, 362436069n ^ low, 521288629n + high, 88675123n ^ high, 5783321n + low];
  let state = words.reduce((whole, word, at) => whole | ((word & WORD) << BigInt(32 * at)), 0n);
  let counter = 6615241n + high + low + 362437n * offset;
  for (let k = 0; k < 64; k++) {
    if ((sequence >> BigInt(k)) & 1n) state = applyMap(xorwowPower(67 + k), state);
    if ((offset >> BigInt(k)) & 1n) state = applyMap(xorwowPower(k), state);
  }
  return () => {
    state = xorwowStep(state);
    counter += 362437n;
    return Number(((state >> 128n) + counter) & WORD);
  };
}

interface Recurrence {
  readonly modulus: bigint;
  readonly step: readonly (readonly bigint[])[];
}
const FIRST: Recurrence = {
  modulus: 4294967087n,
  step: [
    [0n, 1n, 0n],
    [0n, 0n, 1n],
    [-810728n, 1403580n, 0n],
  ],
};
const SECOND: Recurrence = {
  modulus: 4294944443n,
  step: [
    [0n, 1n, 0n],
    [0n, 0n, 1n],
    [-1370589n, 0n, 527612n],
  ],
};

function product(a: Recurrence['step'], b: Recurrence['step'], modulus: bigint): Recurrence['step'] {
  return a.map((row) => b[0]!.map((_unused, j) => row.reduce((sum, v, k) => (sum + v * b[k]![j]!) % modulus, 0n)));
}

function jumped(s: readonly bigint[], { modulus, step }: Recurrence, count: bigint): bigint[] {
  let column = s.map((v) => [v]) as Recurrence['step'];
  let power = step;
  for (let rest = count; rest !== 0n; rest >>= 1n) {
    if (rest & 1n) column = product(power, column, modulus);
    power = product(power, power, modulus);
  }
  return column.map(([v]) => ((v! % modulus) + modulus) % modulus);
}

/** The numbers of MRG32k3a after curand_init, from 1 to its first modulus. */
export function mrg32k3a(seed: bigint, subsequence: bigint, offset: bigint): () => number {
  const low = seed === 0n ? 1n : (seed & WORD) ^ 0x55555555n;
  const high = seed === 0n ? 1n : (seed >> 32n) ^ 0xaaaaaaaan;
  const ahead = (subsequence << 76n) + offset;
  let first = jumped([low * 12345n, high * 12345n, low * 12345n], FIRST, ahead);
  let second = jumped([high * 12345n, low * 12345n, high * 12345n], SECOND, ahead);
  return () => {
    first = jumped(first, FIRST, 1n);
    second = jumped(second, SECOND, 1n);
    const difference = first[2]! - second[2]!;
    return Number(difference > 0n ? difference : difference + FIRST.modulus);
  };
}

/** What `curand` returns for a number of MRG32k3a. */
export function bitsOfMrg(number: number): number {
  return Math.floor(number * 1.000000048662);
}
