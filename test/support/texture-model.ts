// What a texture read returns, computed in JavaScript from the formulas of CUDA's programming guide: the chapter about texture fetches.

export interface ModelTexture {
  /** Width, height and depth, as many as it has. */
  readonly size: readonly number[];
  /** One channel, x fastest. */
  readonly values: ArrayLike<number>;
  readonly filter?: 'point' | 'linear';
  readonly address?: 'clamp' | 'wrap' | 'mirror' | 'border';
  readonly normalized?: boolean;
}

/** Bits of the fraction that weighs elements. */
const STEPS = 256;

/** A coordinate in elements: normalized ones are repeated or mirrored first. */
function scaled(at: number, size: number, { normalized, address }: ModelTexture): number {
  if (normalized !== true) return at;
  const fraction = at - Math.floor(at);
  if (address === 'wrap') return fraction * size;
  if (address === 'mirror') return (Math.floor(at) % 2 === 0 ? fraction : 1 - fraction) * size;
  return at * size;
}

/** An index inside of the texture; undefined for a border. */
function inside(index: number, size: number, { address }: ModelTexture): number | undefined {
  if (index >= 0 && index < size) return index;
  if (address === 'border') return undefined;
  if (address === 'wrap') return (index + size) % size;
  return Math.min(size - 1, Math.max(0, index));
}

/** The value at these coordinates, x first. */
export function sample(texture: ModelTexture, ...coordinates: readonly number[]): number {
  const { size, values, filter = 'point' } = texture;
  const valueAt = (index: readonly number[]): number => {
    let place = 0;
    for (let axis = size.length - 1; axis >= 0; axis--) {
      const own = inside(index[axis]!, size[axis]!, texture);
      if (own === undefined) return 0;
      place = place * size[axis]! + own;
    }
    return values[place]!;
  };
  const at = coordinates.map((one, axis) => scaled(one, size[axis]!, texture));
  if (filter === 'point') return valueAt(at.map(Math.floor));
  const steps = at.map((one) => Math.round((one - 0.5) * STEPS));
  let sum = 0;
  for (let corner = 0; corner < 2 ** size.length; corner++) {
    let weight = 1;
    const index = steps.map((step, axis) => {
      const far = (corner >> axis) & 1;
      const fraction = (step - Math.floor(step / STEPS) * STEPS) / STEPS;
      weight *= far === 1 ? fraction : 1 - fraction;
      return Math.floor(step / STEPS) + far;
    });
    sum += weight * valueAt(index);
  }
  return sum;
}
