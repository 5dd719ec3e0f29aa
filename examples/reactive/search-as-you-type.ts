// Search as you type on a vector index. switchMap ends the search for a text as soon as the user has typed another one.
import { f32, input, kernel, openDevice, output, overlap, type DeviceSpec } from 'millrace';
import { distinctUntilChanged, Subject, switchMap } from 'rxjs';

const WORDS = ['device', 'stream', 'event', 'kernel', 'pinned memory', 'launch', 'barrier', 'shared memory', 'memory pool', 'observable'];
const SIZE = 128;

const scoresOf = kernel('scores', { query: input(f32), words: input(f32, 2), score: output(f32) }, ({ query, words, score }, { i }) => {
  let sum = 0;
  for (let k = 0; k < query.length; k++) sum += query[k]! * words[i]![k]!;
  score[i] = sum;
});

/** A vector with one entry for each pair of neighbouring letters, of length 1. */
function embed(text: string): Float32Array {
  const vector = new Float32Array(SIZE);
  for (let at = 0; at + 1 < text.length; at++) vector[(text.charCodeAt(at) * 31 + text.charCodeAt(at + 1)) % SIZE]! += 1;
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);
using words = device.from(Float32Array.from(WORDS.flatMap((word) => [...embed(word)])), { shape: [WORDS.length, SIZE] });

const search = (text: string) =>
  overlap(device, [text], { depth: 1 }, async (wanted, lane) => {
    const query = lane.from(embed(wanted));
    const score = lane.empty(WORDS.length);
    lane.stream.launch(scoresOf, WORDS.length, { query, words, score });
    const scores = await score.read();
    const ranked = WORDS.map((word, at) => ({ word, score: scores[at]! })).toSorted((a, b) => b.score - a.score);
    return `${wanted}: ${ranked[0]!.word}`;
  });

const typed$ = new Subject<string>();
const lines: string[] = [];
const shown = typed$.pipe(distinctUntilChanged(), switchMap(search)).forEach((line) => lines.push(line));

// A fast typist. With a slow one, debounceTime(100) before switchMap also saves the searches that would begin between two keys.
for (const text of ['m', 'me', 'memo', 'memori', 'memori', 'memori p', 'memori po']) typed$.next(text);
typed$.complete();
await shown;
console.log(lines.join(', ')); // prints: memori po: memory pool
