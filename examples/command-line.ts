// What the command lines of the examples have in common.
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { ArgumentError, UnavailableError } from 'millrace';

/** Something the user can put right: the message is all there is to say. */
export class Refusal extends Error {}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The user asked what the options are: the message lists them. */
export class Help extends Error {}

/** `parseArgs`, whose errors are refusals. Throws Help with this text for `--help`. */
export function parseOrRefuse<const C extends ParseArgsConfig>(help: string, config: C): ReturnType<typeof parseArgs<C>> {
  let parsed: ReturnType<typeof parseArgs<C>>;
  try {
    parsed = parseArgs(config);
  } catch (error) {
    throw new Refusal(`${messageOf(error)} (--help lists the options)`);
  }
  if ((parsed.values as { readonly help?: boolean }).help === true) throw new Help(help);
  return parsed;
}

/** The whole number that an option has. */
export function whole(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most)
    throw new Refusal(`--${name} ${text} is not a whole number from ${least} to ${most}.`);
  return value;
}

/** Runs the program, whose result is its exit code. What the user can put right is told without a stack. */
export async function run(main: (args: readonly string[]) => Promise<number>): Promise<void> {
  try {
    process.exitCode = await main(process.argv.slice(2));
  } catch (error) {
    if (error instanceof Help) return void process.stdout.write(error.message);
    const isKnown = error instanceof Refusal || error instanceof ArgumentError || error instanceof UnavailableError;
    process.stderr.write(`${isKnown ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
    process.exitCode = 1;
  }
}
