// Kernels with which a program must not end: each ends the process of its device, or never returns.
import { cudaKernel, type Device, f32, inout } from 'millrace';

const TEXTS: Readonly<Record<string, string>> = {
  abort: 'extern "C" void abort(); extern "C" __global__ void faulty(float* x) { abort(); }',
  address: 'extern "C" __global__ void faulty(float* x) { *(volatile int*)(16 + (long long)x[0]) = 1; }',
  exit: 'extern "C" void _exit(int); extern "C" __global__ void faulty(float* x) { _exit(1); }',
  endless: 'extern "C" __global__ void faulty(float* x) { while (*(volatile float*)x == 0) { } }',
};

/** The faults, by name. Each settles when the device has noticed it. */
export const FAULTS: readonly (readonly [name: string, cause: (device: Device) => Promise<unknown>])[] = Object.entries(TEXTS).map(
  ([name, text]) => {
    const faulty = cudaKernel('faulty', { x: inout(f32) }, text);
    const cause = async (device: Device): Promise<unknown> => {
      const stream = device.createStream({ label: name });
      using x = stream.zeros(1, 'f32');
      return await stream.launch(faulty, { grid: 1, block: 1 }, { x }).done.catch((error: unknown) => error);
    };
    return [name, cause] as const;
  },
);
