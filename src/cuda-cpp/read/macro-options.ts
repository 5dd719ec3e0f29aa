// Turns the options that define macros (`-DT=float`) into directives behind the headers in front of a source. As options of the compiler,
// such macros would change those headers, too.

/** The headers in front of every source need C++17, which compiles what older dialects do, but for what only host code uses. */
const OLD_DIALECT = /^(--?std=)c\+\+(?:98|03|11|14)$/;

/** The option, with C++17 in place of an older dialect. */
export function withLeastDialect(option: string): string {
  return option.replace(OLD_DIALECT, '$1c++17');
}

export interface MacroOptions {
  readonly directives: string;
  /** The other options, in order. */
  readonly others: readonly string[];
}

/** `NDEBUG` stays an option, because compilers have an `assert` of their own. */
export function macrosOf(options: readonly string[]): MacroOptions {
  let directives = '';
  const others: string[] = [];
  for (let i = 0; i < options.length; i++) {
    const option = options[i]!;
    const match = /^(?:(-D|--define-macro)|(-U|--undefine-macro))(?:=|\s*)(.*)$/s.exec(option);
    if (!match) {
      others.push(option);
      continue;
    }
    const [, define] = match;
    const value = match[3] || (options[++i] ?? '');
    const [name = '', ...text] = value.split('=');
    if (name === 'NDEBUG') others.push(option, ...(match[3] ? [] : [value]));
    directives += define ? `#define ${name} ${text.length > 0 ? text.join('=') : '1'}\n` : `#undef ${value}\n`;
  }
  return { directives, others };
}
