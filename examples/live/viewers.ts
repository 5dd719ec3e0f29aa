// Those who watch. Each gets the newest frame when it has shown an earlier one, so a slow one gets fewer frames, and none waits for another.
import type { Frame } from './frames.js';

/** Frames that a viewer was sent and has not shown: one is on its way while another one is drawn. */
const MOST_UNSHOWN = 2;

/** A WebSocket. */
interface Socket {
  /** What was sent and is still in this process. */
  readonly bufferedAmount: number;
  send(bytes: Uint8Array): void;
}

export class Viewer {
  readonly #socket: Socket;
  #unshown = 0;
  #waiting: Frame | undefined;
  sent = 0;
  skipped = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  offer(frame: Frame): void {
    if (this.#isReady()) {
      if (this.#waiting !== undefined) this.skipped++;
      this.#waiting = undefined;
      this.#send(frame);
    } else {
      if (this.#waiting !== undefined) this.skipped++;
      this.#waiting = frame;
    }
  }

  /** It has drawn a frame. False if it was sent none. */
  shown(): boolean {
    if (this.#unshown === 0) return false;
    this.#unshown--;
    const frame = this.#waiting;
    if (frame === undefined || !this.#isReady()) return true;
    this.#waiting = undefined;
    this.#send(frame);
    return true;
  }

  /** A viewer may say that it has shown what it has not read: then nothing more is sent. */
  #isReady(): boolean {
    return this.#unshown < MOST_UNSHOWN && this.#socket.bufferedAmount === 0;
  }

  #send(frame: Frame): void {
    this.#unshown++;
    this.sent++;
    this.#socket.send(frame.bytes);
  }
}

export class Viewers {
  readonly #all: Set<Viewer> = new Set();
  #arrived: (() => void) | undefined;

  add(socket: Socket): Viewer {
    const viewer = new Viewer(socket);
    this.#all.add(viewer);
    this.#arrived?.();
    return viewer;
  }

  delete(viewer: Viewer): void {
    this.#all.delete(viewer);
  }

  offer(frame: Frame): void {
    for (const viewer of this.#all) viewer.offer(frame);
  }

  /** Resolves when someone watches. */
  async present(signal: AbortSignal): Promise<void> {
    while (this.#all.size === 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#arrived = resolve;
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
  }

  report(): readonly { readonly sent: number; readonly skipped: number }[] {
    return [...this.#all].map(({ sent, skipped }) => ({ sent, skipped }));
  }
}
