// Keeps results about this machine in the image cache for later processes, because they are slow to find: the version output of a compiler
// takes a process, and the identity of the package a read of all its files. The key of a result includes everything that it was derived
// from, so a stored result is never out of date.
import { createHash } from 'node:crypto';
import type { MachineFacts } from '../base/file-stamps.js';
import type { KernelCache } from './cache.js';

export class MachineFactsCache implements MachineFacts {
  readonly #cache: KernelCache;

  constructor(cache: KernelCache) {
    this.#cache = cache;
  }

  async recall(what: string, from: string): Promise<string | undefined> {
    return (await this.#cache.find(nameOf(what, from)))?.content.toString();
  }

  /** Without a writable cache, the next process derives the fact again. */
  async remember(what: string, from: string, found: string): Promise<void> {
    if (this.#cache.isKept) await this.#cache.add(nameOf(what, from), Buffer.from(found)).catch(() => {});
  }
}

function nameOf(what: string, from: string): string {
  return `${what}-${createHash('sha256').update(from).digest('hex').slice(0, 32)}`;
}
