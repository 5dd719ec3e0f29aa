// A registry of this package alone, from the files of build/packages, so that package managers install a release that is not published.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';

export const ROOT = path.resolve(import.meta.dirname, '../..');
export const VERSION: string = (JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { version: string }).version;
export const HERE = `@millrace/linux-${process.arch}-gnu`;
const PLATFORMS = { x64: '@millrace/linux-x64-gnu', arm64: '@millrace/linux-arm64-gnu' };

/** Variables that say how this machine reaches a registry, and where it has room. */
const OF_MACHINE = /^(?:HOME|TMPDIR|npm_config_(?:registry|cache)|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_\w+)$/i;

/** The file of a package in build/packages. */
export function tarball(name: string): string {
  return path.join(ROOT, 'build/packages', `${name.replace('@', '').replace('/', '-')}-${VERSION}.tgz`);
}

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program with a small environment of its own: what a new user has. */
export function run(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
  timeout = 120_000,
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const kept = Object.entries(process.env).filter(([name]) => OF_MACHINE.test(name));
    // `npm run` puts the project's own tools on the PATH.
    const own = (process.env['PATH'] ?? '').split(':').filter((folder) => !folder.startsWith(ROOT));
    const all = { ...Object.fromEntries(kept), PATH: own.join(':'), ...env };
    const child = spawn(program, args, { cwd, env: all, timeout, killSignal: 'SIGKILL' });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}

/** The scope's address is in `.npmrc` of each folder that `project` makes. Only this machine's platform has a tarball. */
export class Registry {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(): Promise<Registry> {
    const server = createServer((request, response) => {
      const { address, port } = server.address() as AddressInfo;
      const url = decodeURIComponent(request.url ?? '');
      const [cpu, name] = Object.entries(PLATFORMS).find(([, one]) => url.startsWith(`/${one}`)) ?? [];
      if (name === undefined) return void response.writeHead(404).end('{}');
      if (url.endsWith('.tgz')) return void response.end(readFileSync(tarball(name)));
      const bytes = name === HERE ? readFileSync(tarball(name)) : Buffer.of();
      const dist = {
        tarball: `http://${address}:${port}/${name}/-/file.tgz`,
        integrity: `sha512-${createHash('sha512').update(bytes).digest('base64')}`,
      };
      const manifest = { name, version: VERSION, os: ['linux'], cpu: [cpu], libc: ['glibc'], main: 'millrace.node', dist };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ name, 'dist-tags': { latest: VERSION }, versions: { [VERSION]: manifest } }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new Registry(server);
  }

  /** Makes a folder whose manifest asks for the package, and whose package managers ask here for platform packages. */
  project(folder: string, files: Readonly<Record<string, string>> = {}): string {
    mkdirSync(folder, { recursive: true });
    const manifest = {
      name: 'a-project',
      private: true,
      type: 'module',
      dependencies: { millrace: `file:${tarball('millrace')}`, rxjs: '^7.8.0' },
    };
    const all = { 'package.json': JSON.stringify(manifest), '.npmrc': `@millrace:registry=http://127.0.0.1:${this.#port}/\n`, ...files };
    for (const [file, text] of Object.entries(all)) writeFileSync(path.join(folder, file), text);
    return folder;
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
