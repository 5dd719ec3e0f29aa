// The name that a misspelt one stands for, in messages.

/** The most changes of characters, for each character of the wrong name, after which two names are still near. */
const NEAR = 0.5;

/** The name that the fewest changes of characters make of the wrong one, if it takes at most so many. */
export function nearestName(wrong: string, names: readonly string[], most: number = Infinity): string | undefined {
  let [nearest, fewest]: [string | undefined, number] = [undefined, most + 1];
  for (const name of names) {
    const changes = name.toLowerCase() === wrong.toLowerCase() ? 0 : changesOf(wrong, name);
    if (changes < fewest) [nearest, fewest] = [name, changes];
  }
  return nearest;
}

/** " (did you mean x?)" with the nearest name; empty if none is near. */
export function didYouMean(wrong: string, names: readonly string[]): string {
  const nearest = nearestName(wrong, names, Math.max(1, Math.floor(wrong.length * NEAR)));
  return nearest === undefined ? '' : ` (did you mean ${nearest}?)`;
}

/** How many characters to insert, remove or replace. */
function changesOf(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 0; i < one.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j++)
      next.push(Math.min((row[j] as number) + (one[i] === other[j] ? 0 : 1), (row[j + 1] as number) + 1, (next[j] as number) + 1));
    row = next;
  }
  return row[other.length] as number;
}
