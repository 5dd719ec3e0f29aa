/** Something the user can put right: the message is all there is to say. */
export class Refusal extends Error {}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
