// Bodies that attract each other: every thread moves one body, and reads all of them to know how.
//
// A step reads the places of before and writes those of after, into another array: a thread that wrote where others still
// read would hand some of them the future. Launches of a stream run one after the other, so swapping the two arrays
// between launches is all the ordering that is needed, and the host waits for none of the steps.
//
// A body is a row of four: x, y, z and its mass.
import { cudaKernel, f32, i32, inout, input, kernel, output, type Device } from 'millrace';
import { compare, FORMS, type Outcome, runAlone, someNumbers, timed } from './lesson.js';

/** Keeps the pull of bodies that meet finite, and the body's own at zero. */
const SOFTENING = 0.01;

export const nBody = kernel(
  'n_body',
  { from: input(f32, 2), velocity: inout(f32, 2), to: output(f32, 2), dt: f32 },
  ({ from, velocity, to, dt }, { i, vec3f, vec4f, add, sub, scale, dot, rsqrt, softening }) => {
    const here = vec3f(from[i]!); // the first three of the row
    let pull = vec3f(0);
    for (let other = 0; other < from.shape[0]; other++) {
      const way = sub(vec3f(from[other]!), here);
      const inverse = rsqrt(dot(way, way) + softening);
      pull = add(pull, scale(way, from[other]![3]! * inverse * inverse * inverse));
    }
    const speed = add(vec3f(velocity[i]!), scale(pull, dt));
    const there = add(here, scale(speed, dt));
    velocity.set(i, speed);
    to.set(i, vec4f(there.x, there.y, there.z, from[i]![3]!));
  },
  { constants: { softening: SOFTENING } },
);

export const nBodyText = cudaKernel(
  'n_body',
  { from: input(f32, 2), velocity: inout(f32, 2), to: output(f32, 2), n: i32, dt: f32 },
  `extern "C" __global__ void n_body(const float* from, float* velocity, float* to, int n, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float4* bodies = reinterpret_cast<const float4*>(from);
  float4 here = bodies[i];
  float px = 0, py = 0, pz = 0;
  for (int other = 0; other < n; other++) {
    float4 there = bodies[other];
    float x = there.x - here.x, y = there.y - here.y, z = there.z - here.z;
    float inverse = rsqrtf(x * x + y * y + z * z + ${SOFTENING}f);
    float strength = there.w * inverse * inverse * inverse;
    px += strength * x;
    py += strength * y;
    pz += strength * z;
  }
  float* speed = velocity + 3 * i;
  speed[0] += px * dt;
  speed[1] += py * dt;
  speed[2] += pz * dt;
  reinterpret_cast<float4*>(to)[i] = make_float4(here.x + speed[0] * dt, here.y + speed[1] * dt, here.z + speed[2] * dt, here.w);
}`,
);

/** One step in place, in double precision. */
export function reference(bodies: Float64Array, velocity: Float64Array, dt: number): void {
  const n = bodies.length / 4;
  const before = bodies.slice();
  for (let i = 0; i < n; i++) {
    const pull = [0, 0, 0];
    for (let other = 0; other < n; other++) {
      const way = [0, 1, 2].map((axis) => before[4 * other + axis]! - before[4 * i + axis]!);
      const strength = before[4 * other + 3]! * (way[0]! ** 2 + way[1]! ** 2 + way[2]! ** 2 + SOFTENING) ** -1.5;
      for (let axis = 0; axis < 3; axis++) pull[axis]! += strength * way[axis]!;
    }
    for (let axis = 0; axis < 3; axis++) {
      velocity[3 * i + axis]! += pull[axis]! * dt;
      bodies[4 * i + axis]! += velocity[3 * i + axis]! * dt;
    }
  }
}

export async function run(device: Device): Promise<readonly Outcome[]> {
  const n = 500;
  const steps = 10;
  const dt = 0.01;
  const start = someNumbers(4 * n).map((value, at) => (at % 4 === 3 ? value / n : value - 0.5));
  const expected = Float64Array.from(start);
  const speeds = new Float64Array(3 * n);
  for (let step = 0; step < steps; step++) reference(expected, speeds, dt);
  await Promise.all([device.compile(nBody), device.compile(nBodyText)]);

  const outcomes: Outcome[] = [];
  for (const form of FORMS) {
    using a = device.from(start, { shape: [n, 4] });
    using b = device.empty([n, 4]);
    using velocity = device.zeros([n, 3]);
    let [from, to] = [a, b];
    const ms = await timed(device, () => {
      for (let step = 0; step < steps; step++) {
        if (form === 'TypeScript') device.stream.launch(nBody, { threads: n, block: 128 }, { from, velocity, to, dt });
        else device.stream.launch(nBodyText, { threads: n, block: 128 }, { from, velocity, to, n, dt });
        [from, to] = [to, from];
      }
    });
    outcomes.push(compare({ kernel: 'n-body', form, ms }, await from.read(), expected, 1e-5));
  }
  return outcomes;
}

await runAlone(import.meta.url, run);
