// A fluid on the device: one graph for each picture.
import { type Device, type DeviceArray, f32, type Graph, i32 } from 'millrace';
import { carry, divergence, paint, push, relax, release } from './kernels.js';

/** Steps of Jacobi's method. An even number, so that the result is in the first array again. */
const RELAXATIONS = 20;
/** The most places that one picture takes forces at. */
export const MOST_FORCES = 8;
/** Of a force, as a share of the height. */
const RADIUS = 0.06;
/** What is left of a velocity after a picture. */
const KEEP_VELOCITY = 0.995;

/** A place and a velocity, in cells. */
export type Force = readonly [x: number, y: number, dx: number, dy: number];

const VALUES = { count: i32, strength: f32, keep: f32 } as const;

export class Fluid {
  readonly height: number;
  readonly width: number;
  readonly #device: Device;
  readonly #fields: readonly DeviceArray<'f32'>[];
  readonly #forces: DeviceArray<'f32'>;
  readonly #picture: DeviceArray<'u8'>;
  readonly #graph: Graph<typeof VALUES>;

  constructor(device: Device, width: number, height: number) {
    [this.#device, this.width, this.height] = [device, width, height];
    const shape = [height, width];
    const field = (): DeviceArray<'f32'> => device.zeros(shape);
    const [u, v, dye, u2, v2, dye2, inflow, pressure] = [field(), field(), field(), field(), field(), field(), field(), field()];
    this.#fields = [u, v, dye, u2, v2, dye2, inflow, pressure];
    const forces = (this.#forces = device.zeros([MOST_FORCES, 4]));
    const picture = (this.#picture = device.empty(shape, 'u8'));
    this.#graph = device.stream.capture(
      VALUES,
      (stream, { count, strength, keep }) => {
        stream.launch(carry, shape, { u: u, v: v, from: u, to: u2, keep: KEEP_VELOCITY });
        stream.launch(carry, shape, { u: u, v: v, from: v, to: v2, keep: KEEP_VELOCITY });
        stream.launch(carry, shape, { u: u, v: v, from: dye, to: dye2, keep });
        stream.copy(u, u2);
        stream.copy(v, v2);
        stream.copy(dye, dye2);
        stream.launch(push, shape, { u: u, v: v, dye: dye, forces, count, radius: RADIUS * height, strength });
        stream.launch(divergence, shape, { u: u, v: v, inflow: inflow });
        stream.fill(pressure, 0);
        // u2 is free here.
        for (let n = 0; n < RELAXATIONS; n += 2) {
          stream.launch(relax, shape, { inflow: inflow, before: pressure, after: u2 });
          stream.launch(relax, shape, { inflow: inflow, before: u2, after: pressure });
        }
        stream.launch(release, shape, { u: u, v: v, pressure: pressure });
        stream.launch(paint, shape, { dye: dye, picture });
      },
      { label: 'fluid' },
    );
  }

  /** Goes on by one picture, and writes it to `into`. */
  async step(forces: readonly Force[], strength: number, keep: number, into: Uint8Array): Promise<void> {
    const { stream } = this.#device;
    const used = forces.slice(-MOST_FORCES);
    if (used.length > 0) stream.copy(this.#forces, Float32Array.from(used.flat()));
    stream.launch(this.#graph, { count: used.length, strength, keep });
    await this.#picture.read({ into });
  }

  /** The velocity, for tests: across and down. */
  velocity(): Promise<readonly Float32Array[]> {
    return Promise.all([this.#fields[0]!.read(), this.#fields[1]!.read()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#graph.close();
    for (const array of [...this.#fields, this.#forces, this.#picture]) array[Symbol.dispose]();
  }
}
