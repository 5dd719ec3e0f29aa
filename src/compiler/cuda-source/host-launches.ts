// Reads which instances of a kernel template the host code of a source launches, for messages: `reduce<float, 256><<<grid, block>>>(x)`.

/** Most characters of template arguments that are searched for their begin. */
const MAX_ARGUMENTS = 500;

/** The instances of this template, as the source names them, each once. `text` has no comments. */
export function launchedInstances(text: string, name: string): string[] {
  const found = new Set<string>();
  for (let at = text.indexOf('<<<'); at >= 0; at = text.indexOf('<<<', at + 3)) {
    const close = text.slice(0, at).trimEnd().length - 1;
    const open = text[close] === '>' ? openingAngle(text, close) : -1;
    if (open < 0) continue;
    const before = /(?:^|[^\w$])([A-Za-z_$][\w$]*)\s*$/.exec(text.slice(Math.max(0, open - name.length - MAX_ARGUMENTS), open))?.[1];
    const given = text
      .slice(open + 1, close)
      .replace(/\s+/g, ' ')
      .trim();
    if (before === name && given !== '') found.add(`${name}<${given}>`);
  }
  return [...found];
}

function openingAngle(text: string, close: number): number {
  let depth = 0;
  for (let at = close; at >= Math.max(0, close - MAX_ARGUMENTS); at--) {
    if (text[at] === '>' && text[at - 1] !== '-') depth++;
    else if (text[at] === '<' && --depth === 0) return at;
    else if (text[at] === ';' || text[at] === '{') return -1;
  }
  return -1;
}
