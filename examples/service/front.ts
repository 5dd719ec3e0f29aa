// One port before several threads: each connection goes to the thread that has the fewest. Threads of Node cannot share a listening socket, so bytes
// are passed on, to a socket in the file system.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Front {
  readonly port: number;
  /** Accepts no further connections; resolves when the last one has ended. */
  close(): Promise<void>;
}

export async function openFront(paths: readonly string[], port: number, host: string): Promise<Front> {
  const open = paths.map(() => 0);
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client: Socket) => {
    const at = open.indexOf(Math.min(...open));
    open[at]!++;
    const worker = connect({ path: paths[at]!, allowHalfOpen: true });
    client.pipe(worker).pipe(client);
    // Either side that breaks off breaks off the other one, so a client that has gone is noticed by the thread that serves it.
    client.on('error', () => worker.destroy()).on('close', () => worker.destroy());
    worker
      .on('error', () => client.destroy())
      .on('close', () => {
        open[at]!--;
        client.destroy();
      });
  });
  await once(server.listen(port, host), 'listening');
  const close = async (): Promise<void> => {
    const closed = once(server, 'close');
    server.close();
    await closed;
  };
  return { port: (server.address() as AddressInfo).port, close };
}
