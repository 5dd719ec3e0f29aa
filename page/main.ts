// The page of a timeline: reads the data that the file holds, and joins the parts.
import type { PageData } from '../src/recording/page-data.js';
import { button, find, make } from './dom.js';
import { OVERVIEW, Painter, RULER } from './draw.js';
import { duration, moment, percent, whole } from './format.js';
import { Input } from './input.js';
import { layoutOf, type Layout } from './layout.js';
import { AWAIT, type Gap, isSame, Model, type Place } from './model.js';
import { CHROME, FAMILIES, type Family, LOOKS, type Theme } from './palette.js';
import { patternOf } from './patterns.js';
import { Panel } from './panel.js';
import { Search } from './search.js';
import { View } from './view.js';

async function read(): Promise<PageData> {
  const text = atob(find('script', 'data').textContent.trim());
  const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return (await new Response(stream).json()) as PageData;
}

/** How long a message is seen. */
const TELL_MS = 3000;

type Choice = Theme | 'auto';
const CHOICES: readonly Choice[] = ['auto', 'light', 'dark'];
const STORED = 'millrace timeline theme';

function storedChoice(): Choice {
  try {
    return CHOICES.find((one) => one === localStorage.getItem(STORED)) ?? 'auto';
  } catch {
    // A page of a file may not store.
    return 'auto';
  }
}

function start(data: PageData): void {
  const model = new Model(data);
  const view = new View(model);
  const [rows, top, scroller, names] = [find('canvas', 'rows'), find('canvas', 'top'), find('div', 'scroller'), find('div', 'names')];
  const timeline = find('div', 'timeline');
  const axisText = find('span', 'axis');
  const painter = new Painter(view, rows, top);
  const closed: Set<string> = new Set();
  let layout: Layout = layoutOf(model.rows, closed);
  let isDue = false;

  const draw = (): void => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      const { base } = painter.draw(layout, scroller.scrollTop);
      timeline.dataset['from'] = String(view.fromNs);
      timeline.dataset['to'] = String(view.toNs);
      axisText.textContent = base === undefined ? 'Time from the start' : `From ${moment(base)} on`;
    });
  };

  const families = FAMILIES.filter((family) => model.rows.some(({ levels }) => levels.some((level) => level.families.includes(family))));
  const dark = matchMedia('(prefers-color-scheme: dark)');
  let choice = storedChoice();
  const theme = (): Theme => (choice === 'auto' ? (dark.matches ? 'dark' : 'light') : choice);
  const resize = (): void => {
    document.documentElement.dataset['theme'] = theme();
    const stage = find('div', 'stage');
    stage.style.right = `${scroller.offsetWidth - scroller.clientWidth}px`;
    const { clientWidth, clientHeight } = stage;
    for (const [canvas, height] of [
      [rows, clientHeight],
      [top, OVERVIEW + RULER],
    ] as const) {
      canvas.style.width = `${clientWidth}px`;
      canvas.style.height = `${height}px`;
    }
    painter.prepare(theme(), Math.max(1, clientWidth), Math.max(1, clientHeight));
    showLegend(theme(), families);
    draw();
  };
  const themeButton = find('button', 'theme');
  const tellTheme = (): void => {
    themeButton.textContent = `Theme: ${choice}`;
    resize();
  };
  themeButton.addEventListener('click', () => {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length]!;
    try {
      localStorage.setItem(STORED, choice);
    } catch {
      // It then lasts as long as the page.
    }
    tellTheme();
  });
  dark.addEventListener('change', resize);

  const showNames = (): void => {
    layout = layoutOf(model.rows, closed);
    find('div', 'content').style.height = `${layout.height}px`;
    // The panel has what is left.
    timeline.style.maxHeight = `${layout.height + OVERVIEW + RULER}px`;
    const length = model.endNs - model.startNs;
    const headings = layout.headings.map(({ group, top: y, isOpen }) => {
      const made = button(
        group === 'host' ? 'This thread' : `Device ${group}`,
        () => {
          if (isOpen) closed.add(group);
          else closed.delete(group);
          showNames();
          draw();
        },
        { class: 'heading', 'aria-expanded': String(isOpen) },
      );
      made.style.top = `${y}px`;
      return made;
    });
    const labels = layout.boxes.map(({ row, top: y, height }) => {
      const share = row.isStream ? `busy ${percent(row.busyNs / length)}` : whole(row.levels.reduce((sum, { count }) => sum + count, 0));
      const made = make(
        'div',
        { class: height < 36 ? 'name short' : 'name', title: row.name },
        make('span', {}, row.name),
        make('small', {}, share),
      );
      made.style.top = `${y}px`;
      made.style.height = `${height}px`;
      return made;
    });
    names.replaceChildren(...headings, ...labels);
  };

  const tip = find('div', 'tip');
  const onHover = (found: Place | Gap | undefined, x: number, y: number): void => {
    tip.hidden = found === undefined;
    if (found === undefined) return;
    const isSlice = 'at' in found;
    const [startNs, endNs] = isSlice ? model.timesOf(found) : [found.startNs, found.endNs];
    const why = isSlice ? undefined : model.explained(found)?.reasons[0];
    const edge = isSlice ? undefined : model.edgeText(found);
    const title = isSlice ? model.labelOf(found) : 'gap';
    tip.replaceChildren(
      make('strong', {}, title),
      ` ${duration(endNs - startNs)}`,
      ...(edge ? [make('div', {}, edge)] : []),
      ...(why ? [make('div', {}, `${why.reason}: ${why.text}`)] : []),
    );
    if (isSlice && model.kindOf(found) !== title) tip.append(make('small', {}, ` ${model.kindOf(found)}`));
    const box = rows.getBoundingClientRect();
    tip.style.left = `${Math.min(box.left + x + 12, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(box.top + y + 16, innerHeight - tip.offsetHeight - 8)}px`;
  };

  const help = find('dialog', 'keys');
  const live = find('div', 'live');
  let hiding: ReturnType<typeof setTimeout> | undefined;
  /** For everybody, for a while. */
  const tell = (text: string): void => {
    live.textContent = text;
    live.classList.add('shown');
    clearTimeout(hiding);
    hiding = setTimeout(() => live.classList.remove('shown'), TELL_MS);
  };
  const follow = (isForward: boolean): void => {
    const { selection } = view;
    if (selection?.kind !== 'slice') return;
    const own = model.arrows.filter(({ from, to }) => isSame(isForward ? from : to, selection.place));
    // Waits of other streams rather than those of the thread.
    const arrow = own.find(({ cause }) => cause !== AWAIT) ?? own[0];
    if (arrow) goTo(isForward ? arrow.to : arrow.from);
    else tell(isForward ? 'Nothing waited for it.' : 'It waited for nothing that the recording has.');
  };
  const input: Input = new Input(view, painter, {
    rows,
    top,
    scroller,
    timeline,
    layout: () => layout,
    onHover,
    onFollow: follow,
    onSearch: () => search.focus(),
    onNext: (by) => search.next(by),
    onHelp: () => help.showModal(),
    onNothing: (text) => tell(text),
  });
  const goTo = (place: Place): void => input.goTo(place);
  const search = new Search(view, goTo);
  const panel = new Panel(view, find('div', 'tabs'), find('div', 'body'), goTo, (gap) => {
    input.scrollTo(gap);
    view.reveal(gap.startNs, gap.endNs);
    view.select({ kind: 'gap', gap });
  });
  panel.onLabel = (label) => search.set(label);

  let told: unknown;
  view.onChange(() => {
    draw();
    const { selection } = view;
    if (told === selection) return;
    told = selection;
    live.classList.remove('shown');
    panel.update();
    if (selection?.kind === 'slice') {
      const [startNs, endNs] = model.timesOf(selection.place);
      live.textContent = `${model.labelOf(selection.place)} on ${model.rows[selection.place.row]!.name}, ${duration(endNs - startNs)}`;
    }
  });

  for (const [id, action] of [
    ['closer', () => view.zoom(0.5)],
    ['further', () => view.zoom(2)],
    ['fit', () => view.fit()],
    ['help', () => help.showModal()],
  ] as const)
    find('button', id).addEventListener('click', action);
  const arrows = find('input', 'arrows');
  arrows.addEventListener('change', () => {
    view.showsArrows = arrows.checked;
    draw();
  });
  scroller.addEventListener('scroll', draw);
  split(find('div', 'splitter'), find('section', 'panel'), resize);
  new ResizeObserver(resize).observe(find('div', 'stage'));

  const devices = new Set(model.rows.filter(({ isStream }) => isStream).map(({ group }) => group));
  const streams = model.rows.filter(({ isStream }) => isStream).length;
  find('p', 'facts').textContent =
    `${[...devices].join(', ') || 'no device'} · ${streams === 1 ? '1 stream' : `${whole(streams)} streams`} · ${whole(model.count)} operations and spans · ${duration(model.endNs - model.startNs)}`;
  showNames();
  tellTheme();
  timeline.focus({ preventScroll: true });
  document.documentElement.dataset['state'] = 'ready';
}

/** Which families there are, with their patterns. */
function showLegend(theme: Theme, families: readonly Family[]): void {
  const items = families.map((family) => {
    const swatch = make('canvas', { width: '44', height: '28' });
    const context = swatch.getContext('2d')!;
    const { name, pattern } = LOOKS[family];
    const [fill, ink] = LOOKS[family][theme];
    context.scale(2, 2);
    for (const style of [fill, patternOf(context, pattern, ink, 2)]) {
      if (style === undefined) continue;
      context.fillStyle = style;
      context.fillRect(0, 0, 22, 14);
    }
    return make('li', {}, swatch, name);
  });
  const strip = make('canvas', { width: '44', height: '28' });
  const context = strip.getContext('2d')!;
  context.fillStyle = CHROME[theme].strip;
  for (const [x, height] of [
    [0, 8],
    [11, 18],
    [22, 24],
    [33, 12],
  ] as const)
    context.fillRect(x, 28 - height, 11, height);
  find('ul', 'legend').replaceChildren(...items, make('li', {}, strip, 'Pending operations'));
}

/** The panel's height, by pointer and by keys. */
function split(splitter: HTMLElement, panel: HTMLElement, onChange: () => void): void {
  const set = (height: number): void => {
    const limited = Math.max(60, Math.min(innerHeight - 260, height));
    panel.style.height = `${limited}px`;
    splitter.setAttribute('aria-valuenow', String(Math.round(limited)));
    onChange();
  };
  splitter.addEventListener('pointerdown', (down) => {
    splitter.setPointerCapture(down.pointerId);
    const height = panel.offsetHeight;
    const move = ({ clientY }: PointerEvent): void => set(height + down.clientY - clientY);
    splitter.addEventListener('pointermove', move);
    splitter.addEventListener('pointerup', () => splitter.removeEventListener('pointermove', move), { once: true });
  });
  splitter.addEventListener('keydown', ({ key }) => {
    const by = { ArrowUp: 24, ArrowDown: -24 }[key];
    if (by !== undefined) set(panel.offsetHeight + by);
  });
}

read().then(start, (error: unknown) => {
  find('p', 'facts').textContent = `The data of this page cannot be read: ${String(error)}`;
});
