// Idioms of finance: closed formulas, trees, simulated paths.
import { f32, f64, i32, inout, input, output, struct, u32, u64, u8 } from 'millrace';
import { philox } from '../support/oracle/philox.js';
import { doubles, floats, type TextCase } from './text-case.js';

const f = Math.fround;

/** The complementary error function: a series for small values, a continued fraction for the others. */
function erfc(x: number): number {
  if (x < 0) return 2 - erfc(-x);
  if (x > 2.5) {
    let fraction = 0;
    for (let k = 120; k > 0; k--) fraction = k / 2 / (x + fraction);
    return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + fraction);
  }
  let [term, sum] = [x, x];
  for (let k = 1; k < 80; k++) {
    term *= (-x * x) / k;
    sum += term / (2 * k + 1);
  }
  return 1 - (2 / Math.sqrt(Math.PI)) * sum;
}
const normal = (d: number): number => 0.5 * erfc(-d / Math.SQRT2);

interface Option {
  readonly spot: number;
  readonly strike: number;
  readonly years: number;
  readonly riskless: number;
  readonly volatility: number;
}
function greeksOf(
  { spot, strike, years, riskless, volatility }: Option,
  sign: number,
): [price: number, delta: number, gamma: number, vega: number] {
  const deviation = volatility * Math.sqrt(years);
  const d1 = (Math.log(spot / strike) + (riskless + volatility ** 2 / 2) * years) / deviation;
  const density = Math.exp((-d1 * d1) / 2) / Math.sqrt(2 * Math.PI);
  const delta = sign * normal(sign * d1);
  const price = spot * delta - sign * strike * Math.exp(-riskless * years) * normal(sign * (d1 - deviation));
  return [price, delta, density / (spot * deviation), spot * density * Math.sqrt(years)];
}

// ── prices ──
const OPTIONS = 2 * 301;
const [RISKLESS, VOLATILITY] = [f(0.02), f(0.3)];
const spots = floats(OPTIONS, (i) => 5 + ((i * 7919) % 251) / 10);
const strikes = floats(OPTIONS, (i) => 4 + ((i * 31) % 307) / 10);
const years = floats(OPTIONS, (i) => 0.25 + ((i * 13) % 39) / 4);
const optionAt = (i: number): Option => ({
  spot: spots[i]!,
  strike: strikes[i]!,
  years: years[i]!,
  riskless: RISKLESS,
  volatility: VOLATILITY,
});
const exact = Array.from({ length: 50 }, (_unused, i) => ({ ...optionAt(i), volatility: 0.15 + i / 100 }));
const isPut = Uint8Array.from(exact, (_unused, i) => (i % 3 === 0 ? 1 : 0));

// ── trees ──
interface Contract {
  readonly spot: number;
  readonly strike: number;
  readonly log_step: number;
  readonly up: number;
  readonly down: number;
  readonly is_american: number;
  readonly sign: number;
}
function contract(steps: number, i: number): Contract {
  const [dt, volatility, riskless] = [1 / steps, 0.15 + i / 50, 0.06];
  const [step, growth] = [volatility * Math.sqrt(dt), Math.exp(riskless * dt)];
  const up = (growth - Math.exp(-step)) / (Math.exp(step) - Math.exp(-step));
  return {
    spot: 100,
    strike: 85 + 6 * i,
    log_step: step,
    up: up / growth,
    down: (1 - up) / growth,
    is_american: i % 2,
    sign: i % 4 < 2 ? -1 : 1,
  };
}
function valueOf(c: Contract, steps: number): number {
  const gain = (level: number, node: number): number =>
    Math.max(0, c.sign * (c.spot * Math.exp(c.log_step * (2 * node - level)) - c.strike));
  const values = Array.from({ length: steps + 1 }, (_unused, node) => gain(steps, node));
  for (let level = steps - 1; level >= 0; level--)
    for (let node = 0; node <= level; node++) {
      const kept = c.up * values[node + 1]! + c.down * values[node]!;
      values[node] = c.is_american === 1 ? Math.max(kept, gain(level, node)) : kept;
    }
  return values[0]!;
}
/** The bytes of contracts with fields of 4 or 8 bytes. */
function bytesOf(contracts: readonly Contract[], width: 4 | 8): Uint8Array {
  const size = 5 * width + 8;
  const view = new DataView(new ArrayBuffer(size * contracts.length));
  for (const [i, c] of contracts.entries()) {
    for (const [at, v] of [c.spot, c.strike, c.log_step, c.up, c.down].entries())
      if (width === 4) view.setFloat32(size * i + 4 * at, v, true);
      else view.setFloat64(size * i + 8 * at, v, true);
    view.setInt32(size * i + 5 * width, c.is_american, true);
    view.setInt32(size * i + 5 * width + 4, c.sign, true);
  }
  return new Uint8Array(view.buffer);
}
const [STEPS, SHARED_STEPS] = [500, 100];
const contracts = Array.from({ length: 6 }, (_unused, i) => contract(STEPS, i));
const european = Array.from({ length: 4 }, (_unused, i) => ({ ...contract(SHARED_STEPS, i), is_american: 0 }));

// ── paths ──
const [PATHS, SEED] = [300, 4321];
const market = { spot: 100, strike: 100, drift: f(0.002), deviation: f(0.06), discount: f(0.95), steps: 12 };
const gains = doubles(PATHS, (path) => {
  const next = philox(SEED, path);
  const unit = (): number => f(f(next()) * 2 ** -32 + 2 ** -33);
  const [price, mean] = [
    [market.spot, market.spot],
    [0, 0],
  ];
  for (let step = 0; step < market.steps; step += 2) {
    const [u, v] = [unit(), unit()];
    for (const z of [Math.sin(2 * Math.PI * v), Math.cos(2 * Math.PI * v)].map((w) => w * Math.sqrt(-2 * Math.log(u))))
      for (const [at, sign] of [1, -1].entries()) {
        price[at]! *= Math.exp(market.drift + market.deviation * sign * z);
        mean[at]! += price[at]! / market.steps;
      }
  }
  return ((Math.max(mean[0]! - market.strike, 0) + Math.max(mean[1]! - market.strike, 0)) / 2) * market.discount;
});

export const FINANCE_CASES: readonly TextCase[] = [
  {
    file: 'finance/black-scholes',
    kernel: 'black_scholes',
    params: {
      call: output(f32),
      put: output(f32),
      spot: input(f32),
      strike: input(f32),
      years: input(f32),
      riskless: f32,
      volatility: f32,
      pairs: i32,
    },
    launch: { grid: 3, block: 128 },
    given: {
      call: new Float32Array(OPTIONS),
      put: new Float32Array(OPTIONS),
      spot: spots,
      strike: strikes,
      years,
      riskless: RISKLESS,
      volatility: VOLATILITY,
      pairs: OPTIONS / 2,
    },
    results: {
      call: floats(OPTIONS, (i) => greeksOf(optionAt(i), 1)[0]),
      put: floats(OPTIONS, (i) => greeksOf(optionAt(i), -1)[0]),
    },
    // The approximate functions of a GPU, and differences of numbers up to 35 whose factors are exact to 1e-6.
    tolerance: 1e-4,
  },
  {
    file: 'finance/black-scholes',
    kernel: 'greeks',
    params: { options: input(f64), types: input(u8), results: output(f64), n: u64 },
    launch: { grid: 2, block: 16 },
    given: {
      options: Float64Array.from(exact.flatMap((o) => [o.spot, o.strike, o.years, o.riskless, o.volatility])),
      types: isPut,
      results: new Float64Array(4 * exact.length),
      n: exact.length,
    },
    // The fields are price, delta, gamma and vega.
    results: { results: Float64Array.from(exact.flatMap((option, i) => greeksOf(option, isPut[i] === 1 ? -1 : 1))) },
    tolerance: 1e-11,
  },
  {
    file: 'finance/binomial-tree',
    kernel: 'binomial<double>',
    params: { contracts: input(u8), prices: output(f64) },
    launch: { grid: contracts.length, block: 64 },
    given: { contracts: bytesOf(contracts, 8), prices: new Float64Array(contracts.length) },
    results: { prices: Float64Array.from(contracts, (c) => valueOf(c, STEPS)) },
    tolerance: 1e-11,
  },
  {
    file: 'finance/binomial-tree',
    kernel: `binomial_shared<${SHARED_STEPS}>`,
    params: { contracts: input(u8), prices: output(f32) },
    launch: { grid: european.length, block: 32 },
    given: { contracts: bytesOf(european, 4), prices: new Float32Array(european.length) },
    results: { prices: Float32Array.from(european, (c) => valueOf(c, SHARED_STEPS)) },
    // A hundred steps of rounded sums.
    tolerance: 2e-5,
  },
  {
    file: 'finance/monte-carlo',
    kernel: 'asian_option',
    params: {
      market: struct({ spot: f32, strike: f32, drift: f32, deviation: f32, discount: f32, steps: i32 }),
      seed: u64,
      paths: i32,
      sums: inout(f64),
      count: inout(u32),
    },
    launch: { grid: 2, block: 64, sharedBytes: 2 * 24 },
    given: { market, seed: SEED, paths: PATHS, sums: new Float64Array(2), count: new Uint32Array(1) },
    results: {
      sums: Float64Array.of(
        gains.reduce((a, b) => a + b),
        gains.reduce((a, b) => a + b * b, 0),
      ),
      count: Uint32Array.of(PATHS),
    },
    // A gain is the small difference of prices near 100, each of them twelve products of f32.
    tolerance: 5e-5,
  },
];
