// What was found out about this machine, kept in the cache of built kernels from one process to the next: what a compiler
// says of itself takes a process, the identity of the package a read of all its files. Each is kept under everything that
// it was found out from, so that nothing is ever out of date.
import { createHash } from 'node:crypto';
import type { Facts } from '../base/file-stamps.js';
import type { KernelCache } from './cache.js';

export class CachedFacts implements Facts {
  readonly #cache: KernelCache;

  constructor(cache: KernelCache) {
    this.#cache = cache;
  }

  async recall(what: string, from: string): Promise<string | undefined> {
    return (await this.#cache.find(nameOf(what, from)))?.content.toString();
  }

  /** A cache that cannot be written to keeps nothing, which costs time. */
  async remember(what: string, from: string, found: string): Promise<void> {
    if (this.#cache.isKept) await this.#cache.add(nameOf(what, from), Buffer.from(found)).catch(() => {});
  }
}

function nameOf(what: string, from: string): string {
  return `${what}-${createHash('sha256').update(from).digest('hex').slice(0, 32)}`;
}
