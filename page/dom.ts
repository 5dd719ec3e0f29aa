// Elements, made of text and never of markup: labels are whatever a program gave.

type Child = Node | string;

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function button(text: string, onClick: () => void, attributes: Readonly<Record<string, string>> = {}): HTMLButtonElement {
  const made = make('button', { type: 'button', ...attributes }, text);
  made.addEventListener('click', onClick);
  return made;
}

export function find<K extends keyof HTMLElementTagNameMap>(tag: K, id: string): HTMLElementTagNameMap[K] {
  const element = document.getElementById(id);
  if (element?.localName !== tag) throw new Error(`The page has no ${tag} with the id ${id}.`);
  return element as HTMLElementTagNameMap[K];
}

export interface Column<T> {
  readonly title: string;
  readonly isNumber?: boolean;
  readonly text: (one: T) => string;
  /** Rows can be sorted by it. */
  readonly value?: (one: T) => number | string;
  /** Its cells are buttons. */
  readonly onPick?: (one: T) => void;
}

/** A table whose heads sort it. Its rows can be clicked, or focused and pressed Enter on. */
export function table<T>(
  caption: string,
  columns: readonly Column<T>[],
  all: readonly T[],
  onPick?: (one: T) => void,
  sortedBy = -1,
): HTMLElement {
  const most = 200;
  const body = make('tbody');
  const heads: HTMLElement[] = [];
  let [by, isDown] = [sortedBy, true];
  const fill = (): void => {
    const value = columns[by]?.value;
    const compare = (a: T, b: T): number => {
      const [x, y] = [value!(a), value!(b)];
      return typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y));
    };
    const sorted = value === undefined ? all : all.toSorted((a, b) => (isDown ? -compare(a, b) : compare(a, b)));
    body.replaceChildren(
      ...sorted.slice(0, most).map((one) => {
        const row = make('tr', onPick ? { tabindex: '0' } : {});
        for (const { text, isNumber, onPick: pick } of columns) {
          const cell = pick ? button(text(one), () => pick(one)) : text(one);
          // The row would take it, too.
          if (cell instanceof HTMLElement)
            for (const type of ['click', 'keydown']) cell.addEventListener(type, (event) => event.stopPropagation());
          row.append(make('td', isNumber ? { class: 'number' } : {}, cell));
        }
        if (onPick) {
          row.addEventListener('click', () => onPick(one));
          row.addEventListener('keydown', ({ key }) => key === 'Enter' && onPick(one));
        }
        return row;
      }),
    );
    for (const [at, head] of heads.entries()) {
      if (at === by) head.setAttribute('aria-sort', isDown ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    }
  };
  for (const [at, { title, isNumber, value }] of columns.entries()) {
    const head = make('th', { scope: 'col', ...(isNumber && { class: 'number' }) });
    if (value === undefined) head.append(title);
    else
      head.append(
        button(title, () => {
          isDown = by === at ? !isDown : isNumber === true;
          by = at;
          fill();
        }),
      );
    heads.push(head);
  }
  fill();
  const made = make('table', {}, make('caption', {}, caption), make('thead', {}, make('tr', {}, ...heads)), body);
  return all.length <= most ? made : make('div', {}, made, make('p', { class: 'faint' }, `The first ${most} of ${all.length}.`));
}
