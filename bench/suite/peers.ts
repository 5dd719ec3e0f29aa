// The peers of a device: those that are there, and why the others are not.
import { fileURLToPath } from 'node:url';
import { NATIVE } from './native.js';
import { Peer } from './peer.js';

export interface Peers {
  readonly present: ReadonlyMap<string, Peer>;
  /** Reasons by name. */
  readonly absent: ReadonlyMap<string, string>;
  close(): void;
}

const PYTHON = [
  ['CuPy', 'cupy_peer.py'],
  ['PyTorch', 'torch_peer.py'],
  ['cuda.core', 'cuda_core_peer.py'],
] as const;

export function peerScript(name: string): string {
  return fileURLToPath(new URL(`../../../../bench/peers/${name}`, import.meta.url));
}

/** Starts the peers of a device all at once. They take seconds, and nothing is measured meanwhile. */
export async function startPeers(backend: 'cpu' | 'cuda', ordinal: string): Promise<Peers> {
  const programs: (readonly [name: string, program: string, args: readonly string[]])[] =
    backend === 'cpu'
      ? [
          ['C++ threads', `${NATIVE}thread_peer`, []],
          ['NumPy', 'python3', [peerScript('numpy_peer.py')]],
        ]
      : [
          ['C++ driver', `${NATIVE}driver_peer`, [ordinal]],
          ...PYTHON.map(([name, script]) => [name, 'python3', [peerScript(script), ordinal]] as const),
        ];
  const started = await Promise.all(programs.map(async ([name, ...rest]) => [name, await Peer.start(name, ...rest)] as const));
  const present = new Map(started.flatMap(([name, peer]) => (peer instanceof Peer ? [[name, peer] as const] : [])));
  const absent = new Map(started.flatMap(([name, peer]) => (peer instanceof Peer ? [] : [[name, peer] as const])));
  const close = (): void => {
    for (const peer of present.values()) peer.close();
  };
  return { present, absent, close };
}
