// Numbers that tell objects of the library apart.

let last = 0;

/** A number that no other object of this thread has. Deep comparisons would otherwise find two arrays of one shape equal. */
export function nextSerial(): number {
  return ++last;
}
