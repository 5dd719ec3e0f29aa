// Search as you type on a vector index. switchMap ends the search for a text as soon as the user has typed another one.
import { openDevice, overlap, type DeviceSpec } from 'millrace';
import { argmax, matmul } from 'millrace/ops';
import { distinctUntilChanged, Subject, switchMap } from 'rxjs';

const WORDS = ['device', 'stream', 'event', 'kernel', 'pinned memory', 'launch', 'barrier', 'shared memory', 'memory pool', 'observable'];
const SIZE = 128;

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
    const scores = matmul(words, lane.from(embed(wanted)), { stream: lane });
    return `${wanted}: ${WORDS[await argmax(scores, { stream: lane }).item()]}`;
  });

const typed$ = new Subject<string>();
const lines: string[] = [];
const shown = typed$.pipe(distinctUntilChanged(), switchMap(search)).forEach((line) => lines.push(line));

// A fast typist. With a slow one, debounceTime(100) before switchMap also saves the searches that would begin between two keys.
for (const text of ['m', 'me', 'memo', 'memori', 'memori', 'memori p', 'memori po']) typed$.next(text);
typed$.complete();
await shown;
console.log(lines.join(', ')); // prints: memori po: memory pool
