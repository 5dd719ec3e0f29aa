// The programs of this folder, and how many devices each of them is about.
import type { Device } from 'millrace';
import * as arrayCreation from './array-creation.js';
import * as asyncLaunches from './async-launches.js';
import * as copies from './copies.js';
import * as currentStreams from './current-streams.js';
import * as dataParallel from './data-parallel.js';
import * as eventTiming from './event-timing.js';
import * as explicitStreams from './explicit-streams.js';
import * as graphForkJoin from './graph-fork-join.js';
import * as graphTwoDevices from './graph-two-devices.js';
import * as missingWait from './missing-wait.js';
import * as moduleCalls from './module-calls.js';
import * as overlapTransfer from './overlap-transfer.js';
import * as peerCopy from './peer-copy.js';
import * as priorities from './priorities.js';
import * as producerConsumer from './producer-consumer.js';
import * as readback from './readback.js';
import * as registerHostMemory from './register-host-memory.js';
import * as foreignLibrary from './foreign-library.js';
import * as sharedDevice from './shared-device.js';
import * as sideStream from './side-stream.js';
import * as stagedReadback from './staged-readback.js';
import * as statusQueries from './status-queries.js';
import * as streams from './streams.js';
import * as synchronizeLevels from './synchronize-levels.js';

export interface Program {
  readonly name: string;
  readonly devices: 1 | 2;
  readonly run: (devices: readonly [Device, Device]) => Promise<unknown>;
}

export const PROGRAMS: readonly Program[] = [
  { name: 'async-launches', devices: 2, run: asyncLaunches.run },
  { name: 'array-creation', devices: 2, run: arrayCreation.run },
  { name: 'copies', devices: 1, run: ([device]) => copies.run([device]) },
  { name: 'peer-copy', devices: 2, run: peerCopy.run },
  { name: 'streams', devices: 1, run: ([device]) => streams.run([device]) },
  { name: 'overlap-transfer', devices: 1, run: ([device]) => overlapTransfer.run([device]) },
  { name: 'synchronize-levels', devices: 2, run: synchronizeLevels.run },
  { name: 'producer-consumer', devices: 1, run: ([device]) => producerConsumer.run([device]) },
  { name: 'staged-readback', devices: 1, run: ([device]) => stagedReadback.run([device]) },
  { name: 'module-calls', devices: 1, run: ([device]) => moduleCalls.run([device]) },
  { name: 'status-queries', devices: 1, run: ([device]) => statusQueries.run([device]) },
  { name: 'readback', devices: 1, run: ([device]) => readback.run([device]) },
  { name: 'explicit-streams', devices: 2, run: explicitStreams.run },
  { name: 'priorities', devices: 1, run: ([device]) => priorities.run([device]) },
  { name: 'missing-wait', devices: 1, run: ([device]) => missingWait.run([device]) },
  { name: 'current-streams', devices: 1, run: ([device]) => currentStreams.run([device]) },
  { name: 'event-timing', devices: 1, run: ([device]) => eventTiming.run([device]) },
  { name: 'register-host-memory', devices: 1, run: ([device]) => registerHostMemory.run([device]) },
  { name: 'side-stream', devices: 1, run: ([device]) => sideStream.run([device]) },
  { name: 'foreign-library', devices: 1, run: ([device]) => foreignLibrary.run([device]) },
  { name: 'shared-device', devices: 1, run: ([device]) => sharedDevice.run([device]) },
  { name: 'data-parallel', devices: 2, run: dataParallel.run },
  { name: 'graph-two-devices', devices: 2, run: graphTwoDevices.run },
  { name: 'graph-fork-join', devices: 1, run: graphForkJoin.run },
];
