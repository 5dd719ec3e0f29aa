// Sizes as people read them.

/** `512 bytes`, `12 KiB`, `3.4 MiB`. */
export function bytesText(count: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const at = Math.min(units.length - 1, count < 1 ? 0 : Math.floor(Math.log2(count) / 10));
  return `${(count / 1024 ** at).toFixed(at > 1 ? 1 : 0)} ${units[at]}`;
}
