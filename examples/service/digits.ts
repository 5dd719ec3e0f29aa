// The digits: the network of examples/training, and the parameters that it has learnt.
import { readFile } from 'node:fs/promises';
import { Refusal } from '../command-line.js';
import { Network, PARAMETERS } from '../training/network.js';
import { CLASSES, PIXELS } from '../training/shape.js';
import { plainShares } from './plain.js';
import type { Model } from './predictor.js';

/** 28 x 28 bytes become the probabilities of the ten digits. */
export const DIGITS: Model<Uint8Array, Float32Array, void> = {
  bytes: PIXELS,
  numbers: CLASSES,
  prepare: (pixels, into) => into.set(pixels),
  answer: (shares) => shares,
  open: (device, parameters) => {
    const networks: Network[] = [];
    return {
      capture: (batch) => {
        const network = new Network(device, parameters, batch);
        networks.push(network);
        return network.captureAnswer();
      },
      [Symbol.dispose]: () => {
        for (const network of networks) network[Symbol.dispose]();
      },
    };
  },
  plain: plainShares,
};

export async function readDigits(file: string): Promise<Float32Array> {
  const bytes = await readFile(file).catch((error: Error) => {
    throw new Refusal(`The parameters cannot be read: ${error.message}`);
  });
  if (bytes.length !== 4 * PARAMETERS) throw new Refusal(`${file} has ${bytes.length} bytes, not ${4 * PARAMETERS}.`);
  return new Float32Array(Uint8Array.from(bytes).buffer);
}
