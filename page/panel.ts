// The panel below the rows: details of what is selected, a table of its operations by label, gaps, and the summary.
import { button, make, table } from './dom.js';
import { bytes, duration, moment, percent, whole } from './format.js';
import { AWAIT, type Gap, isSame, type Model, type Place } from './model.js';
import type { View } from './view.js';

type TabName = 'details' | 'labels' | 'gaps' | 'summary';
const TABS: Readonly<Record<TabName, string>> = { details: 'Details', labels: 'By label', gaps: 'Gaps', summary: 'Summary' };

interface LabelSum {
  readonly label: string;
  readonly kind: string;
  /** The device; undefined for this thread. */
  readonly device: string | undefined;
  count: number;
  totalNs: number;
  mostNs: number;
  longest: Place;
  bytes: number;
}

export class Panel {
  readonly #view: View;
  readonly #model: Model;
  readonly #goTo: (place: Place) => void;
  readonly #goToGap: (gap: Gap) => void;
  readonly #tabs: HTMLElement;
  readonly #body: HTMLElement;
  #tab: TabName = 'summary';
  #shown: unknown = null;

  constructor(view: View, tabs: HTMLElement, body: HTMLElement, goTo: (place: Place) => void, goToGap: (gap: Gap) => void) {
    this.#view = view;
    this.#model = view.model;
    this.#goTo = goTo;
    this.#goToGap = goToGap;
    this.#tabs = tabs;
    this.#body = body;
    const buttons = (Object.keys(TABS) as TabName[]).map((name) =>
      button(TABS[name], () => this.show(name), { role: 'tab', id: `tab-${name}`, 'aria-controls': body.id }),
    );
    tabs.append(...buttons);
    tabs.addEventListener('keydown', ({ key }) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
      if (step === undefined) return;
      const names = Object.keys(TABS) as TabName[];
      this.show(names.at((names.indexOf(this.#tab) + step) % names.length)!);
      document.getElementById(`tab-${this.#tab}`)?.focus();
    });
    this.show('summary');
  }

  show(tab: TabName): void {
    this.#tab = tab;
    for (const one of this.#tabs.children) {
      const isOwn = one.id === `tab-${tab}`;
      one.setAttribute('aria-selected', String(isOwn));
      one.setAttribute('tabindex', isOwn ? '0' : '-1');
    }
    this.#body.setAttribute('aria-labelledby', `tab-${tab}`);
    this.#shown = null;
    this.update();
  }

  /** After a change of what is selected. */
  update(): void {
    const { selection } = this.#view;
    if (this.#shown === (selection ?? undefined)) return;
    const isNew = this.#shown !== null;
    this.#shown = selection;
    if (isNew && selection) {
      const wanted = selection.kind === 'range' ? 'labels' : 'details';
      if (this.#tab !== wanted) {
        this.show(wanted);
        return;
      }
    }
    this.#body.replaceChildren(...this.#content());
    this.#body.scrollTop = 0;
  }

  #content(): readonly Node[] {
    const { selection } = this.#view;
    if (this.#tab === 'labels') return [this.#labels()];
    if (this.#tab === 'gaps') return [this.#gaps()];
    if (this.#tab === 'summary') return this.#summary();
    if (selection?.kind === 'slice') return this.#slice(selection.place);
    if (selection?.kind === 'gap') return this.#gap(selection.gap);
    if (selection)
      return [
        facts([
          ['Begin', moment(selection.fromNs)],
          ['End', moment(selection.toNs)],
          ['Length', duration(selection.toNs - selection.fromNs)],
        ]),
      ];
    return [
      make(
        'p',
        { class: 'faint' },
        'Nothing is selected. Click an operation or a gap; drag with Shift, or along the ruler, to select a time.',
      ),
    ];
  }

  #slice(place: Place): readonly Node[] {
    const model = this.#model;
    const row = model.rows[place.row]!;
    const level = row.levels[place.level]!;
    const [startNs, endNs] = model.timesOf(place);
    const isKnown = level.isKnown(place.at);
    const own = row.facts(place.at);
    const lines: (readonly [string, string | Node])[] = [
      ['Kind', model.kindOf(place)],
      row.isStream ? ['Stream', `${row.name}, ${row.group}`] : ['Row', `${row.name}, of ${THREAD}`],
    ];
    if (isKnown) lines.push(['Begin', moment(startNs)], ['End', moment(endNs)], ['Length', duration(endNs - startNs)]);
    else lines.push(['Ran', 'not known: it had not ended, or the device did not tell']);
    if (own) {
      if (own.submittedNs !== undefined)
        lines.push([
          'Submitted',
          `${moment(own.submittedNs)}${isKnown ? `, ${duration(startNs - own.submittedNs)} before its begin` : ''}`,
        ]);
      if (own.issuedNs !== undefined)
        lines.push(['Issued', `${moment(own.issuedNs)}${isKnown ? `, ${duration(startNs - own.issuedNs)} before its begin` : ''}`]);
      if (own.bytes !== null) {
        const rate =
          isKnown && endNs > startNs && model.kindOf(place) === 'copy' ? `, ${(own.bytes / (endNs - startNs)).toFixed(2)} GB/s` : '';
        lines.push(['Bytes', `${whole(own.bytes)} (${bytes(own.bytes)})${rate}`]);
      }
      if (own.direction !== undefined) lines.push(['Direction', DIRECTIONS[own.direction] ?? own.direction]);
      if (own.isPageable !== null)
        lines.push(['Host memory', own.isPageable ? 'pageable: an ordinary typed array' : 'page-locked: device.pinned()']);
      if (own.threads !== null) lines.push(['Threads', whole(own.threads)]);
      if (own.site !== undefined) lines.push(['Called at', own.site]);
      if (own.timedTogether !== null)
        lines.push(['Timed', `with others, ${whole(own.timedTogether)} together: each is taken to last equally long`]);
      lines.push(['Ticket', whole(own.ticket)]);
      if (own.id !== null) lines.push(['Id', String(own.id)]);
      if (own.parked.length > 0) {
        const items = own.parked.map(({ reason, fromNs }, at) => {
          const until = own.parked[at + 1]?.fromNs ?? own.issuedNs;
          return make(
            'li',
            {},
            `${REASONS[reason] ?? reason}, from ${moment(fromNs)}${until === undefined ? '' : ` for ${duration(until - fromNs)}`}`,
          );
        });
        lines.push(['Could not be issued', make('ul', {}, ...items)]);
      }
    }
    const link = (other: Place, more: string): HTMLElement => {
      const { isStream, name } = model.rows[other.row]!;
      return make(
        'li',
        {},
        button(`${model.labelOf(other)}${isStream ? ` on ${name}` : ''}`, () => this.#goTo(other)),
        more,
      );
    };
    const isAt = (one: Place): boolean => isSame(one, place);
    const awaited = model.arrows.filter(({ to }) => isAt(to)).map(({ from, cause }) => link(from, ` (${CAUSES[cause] ?? cause})`));
    const waiting = model.arrows.filter(({ from }) => isAt(from)).map(({ to, cause }) => link(to, ` (${CAUSES[cause] ?? cause})`));
    if (awaited.length > 0) lines.push(['Waited for', make('ul', {}, ...awaited)]);
    if (waiting.length > 0) lines.push(['Awaited by', make('ul', {}, ...waiting.slice(0, 20))]);
    const nodes: Node[] = [make('h2', {}, model.labelOf(place)), facts(lines)];
    if (!row.isStream) return nodes;
    const isWait = level.families[place.at] === 'wait';
    const gap = isWait ? { row: place.row, startNs, endNs, before: undefined, after: undefined } : model.gapAt(row, startNs - 0.5);
    if (gap) nodes.push(...this.#why(gap, isWait ? ' on its stream' : ' before it'));
    return nodes;
  }

  #gap(gap: Gap): readonly Node[] {
    const { rows } = this.#model;
    const edge = this.#model.edgeText(gap);
    const link = (at: number | undefined, missing: string): Node | string => {
      if (at === undefined) return missing;
      const place = { row: gap.row, level: 0, at };
      return button(this.#model.labelOf(place), () => this.#goTo(place));
    };
    return [
      make('h2', {}, `Gap of ${duration(gap.endNs - gap.startNs)}`),
      facts([
        ['Stream', `${rows[gap.row]!.name}, ${rows[gap.row]!.group}`],
        ['Begin', moment(gap.startNs)],
        ['End', moment(gap.endNs)],
        ['After', link(gap.before, 'the begin of the recording')],
        ['Before', link(gap.after, 'the end of the recording')],
      ]),
      ...(edge === undefined ? [] : [make('p', {}, edge)]),
      ...this.#why(gap),
    ];
  }

  #why(gap: Gap, where = ''): readonly Node[] {
    const explained = this.#model.explained(gap);
    if (!explained || explained.reasons.length === 0) return [];
    const items = explained.reasons.map(({ reason, ms, text, remedy }) =>
      make('li', {}, make('strong', {}, `${reason}, ${duration(ms * 1e6)}`), `: ${text} `, make('em', {}, remedy)),
    );
    return [make('h3', {}, `Why there was a gap of ${duration(explained.endNs - explained.startNs)}${where}`), make('ul', {}, ...items)];
  }

  #labels(): Node {
    const { selection } = this.#view;
    const range = selection?.kind === 'range' ? selection : undefined;
    const [fromNs, toNs] = range ? [range.fromNs, range.toNs] : [this.#model.startNs, this.#model.endNs];
    const { texts } = this.#model;
    const sums: Map<string, LabelSum> = new Map();
    for (const row of this.#model.rows)
      for (const [depth, level] of row.levels.entries())
        for (let at = level.firstAfter(fromNs - 0.5); at < level.count && level.starts[at]! < toNs; at++) {
          const kind = texts[level.kinds[at]!]!;
          // Their labels are numbers.
          const label = kind === 'item' ? kind : texts[level.labels[at]!]!;
          const device = row.isStream ? row.group : undefined;
          const key = `${label} ${kind} ${device ?? ''}`;
          const longest = { row: row.index, level: depth, at };
          let sum = sums.get(key);
          if (sum === undefined) sums.set(key, (sum = { label, kind, device, count: 0, totalNs: 0, mostNs: 0, longest, bytes: 0 }));
          // Of what reaches out of the range, the part within.
          const ns = Math.max(0, Math.min(level.ends[at]!, toNs) - Math.max(level.starts[at]!, fromNs));
          sum.count++;
          sum.totalNs += ns;
          if (ns > sum.mostNs) [sum.mostNs, sum.longest] = [ns, longest];
          if (row.isStream) sum.bytes += row.bytesOf(at);
        }
    const title = range ? `In the selected ${duration(toNs - fromNs)}` : 'In the whole recording (select a time with Shift and drag)';
    return table<LabelSum>(
      title,
      [
        { title: 'Label', text: ({ label }) => label, value: ({ label }) => label },
        { title: 'Kind', text: ({ kind }) => kind, value: ({ kind }) => kind },
        { title: 'Where', text: ({ device = THREAD }) => device, value: ({ device = THREAD }) => device },
        { title: 'Count', isNumber: true, text: ({ count }) => whole(count), value: ({ count }) => count },
        { title: 'Total', isNumber: true, text: ({ totalNs }) => duration(totalNs), value: ({ totalNs }) => totalNs },
        {
          title: 'Mean',
          isNumber: true,
          text: ({ totalNs, count }) => duration(totalNs / count),
          value: ({ totalNs, count }) => totalNs / count,
        },
        {
          title: 'Longest',
          isNumber: true,
          text: ({ mostNs }) => duration(mostNs),
          value: ({ mostNs }) => mostNs,
          onPick: ({ longest }) => this.#goTo(longest),
        },
        { title: 'Bytes', isNumber: true, text: (one) => (one.bytes > 0 ? bytes(one.bytes) : ''), value: (one) => one.bytes },
        {
          title: 'Share of time',
          isNumber: true,
          text: ({ totalNs }) => percent(totalNs / (toNs - fromNs)),
          value: ({ totalNs }) => totalNs,
        },
      ],
      [...sums.values()],
      ({ label }) => this.onLabel(label),
      4,
    );
  }

  /** A label of the table was picked. */
  onLabel: (label: string) => void = () => undefined;

  /** The longest gaps between operations of streams. */
  #gaps(): Node {
    const model = this.#model;
    const name = (gap: Gap, at: number | undefined): string => (at === undefined ? '' : model.labelOf({ row: gap.row, level: 0, at }));
    return table<Gap>(
      model.data.withoutTimes.length > 0
        ? `The longest gaps of streams, without those of ${model.data.withoutTimes.join(', ')}, of which no times were recorded`
        : 'The longest gaps of streams: times without a kernel, copy, fill or graph on the device, also before the first and after the last one',
      [
        { title: 'Length', isNumber: true, text: (gap) => duration(gap.endNs - gap.startNs), value: (gap) => gap.endNs - gap.startNs },
        {
          title: 'Stream',
          text: ({ row }) => `${model.rows[row]!.name}, ${model.rows[row]!.group}`,
          value: ({ row }) => model.rows[row]!.name,
        },
        { title: 'Begin', isNumber: true, text: ({ startNs }) => moment(startNs), value: ({ startNs }) => startNs },
        { title: 'After', text: (gap) => name(gap, gap.before) },
        { title: 'Before', text: (gap) => name(gap, gap.after) },
        {
          title: 'Why',
          text: (gap) => model.edgeText(gap) ?? this.#whyText(gap),
        },
      ],
      model.gaps(),
      this.#goToGap,
      0,
    );
  }

  /** The reasons that cost a hundredth of the gap or more. */
  #whyText(gap: Gap): string {
    const sums: Map<string, number> = new Map();
    for (const { reason, ms } of this.#model.explained(gap)?.reasons ?? []) sums.set(reason, (sums.get(reason) ?? 0) + ms * 1e6);
    return [...sums]
      .filter(([, ns]) => ns >= (gap.endNs - gap.startNs) / 100)
      .toSorted(([, a], [, b]) => b - a)
      .map(([reason, ns]) => `${reason} ${duration(ns)}`)
      .join(', ');
  }

  #summary(): readonly Node[] {
    const { data, rows, startNs, endNs, count } = this.#model;
    const length = endNs - startNs;
    const streams = rows.filter(({ isStream }) => isStream);
    const nodes: Node[] = [];
    const dropped = data.dropped > 0 ? ` ${whole(data.dropped)} older ones were dropped.` : '';
    nodes.push(
      make(
        'p',
        {},
        `${duration(length)}, ${whole(count)} operations and spans, from ${data.recordedAt.replace('T', ' ').replace('Z', '')} UTC on.${dropped}`,
      ),
    );
    nodes.push(
      table(
        'Streams',
        [
          { title: 'Stream', text: ({ name }) => name, value: ({ name }) => name },
          { title: 'Device', text: ({ group }) => group, value: ({ group }) => group },
          { title: 'Operations', isNumber: true, text: ({ levels }) => whole(levels[0]!.count), value: ({ levels }) => levels[0]!.count },
          { title: 'Busy', isNumber: true, text: ({ busyNs }) => duration(busyNs), value: ({ busyNs }) => busyNs },
          { title: 'Share of time', isNumber: true, text: ({ busyNs }) => percent(busyNs / length), value: ({ busyNs }) => busyNs },
          {
            title: 'Most pending',
            isNumber: true,
            text: ({ pending }) => whole(pending?.most ?? 0),
            value: ({ pending }) => pending?.most ?? 0,
          },
        ],
        streams,
        (row) => this.#goTo({ row: row.index, level: 0, at: 0 }),
        3,
      ),
    );
    return [...this.#costs(), ...nodes];
  }

  #costs(): readonly Node[] {
    const { costs } = this.#model.data;
    if (costs.length === 0) return [];
    return [
      table(
        'Why streams had nothing to do. The cost is of all streams together; the share is of the time in which it held up at least one',
        [
          { title: 'Reason', text: ({ reason }) => reason },
          { title: 'Cost', isNumber: true, text: ({ ms }) => duration(ms * 1e6) },
          { title: 'Share of time', isNumber: true, text: ({ share }) => percent(share) },
          { title: 'Gaps', isNumber: true, text: ({ count }) => whole(count) },
          { title: 'The worst', text: ({ text }) => text },
          { title: 'What would change it', text: ({ remedy }) => remedy },
        ],
        costs,
      ),
    ];
  }
}

const THREAD = 'this thread';

const REASONS: Readonly<Record<string, string>> = {
  compile: 'its kernel was being built',
  memory: 'device memory had to be freed first',
  host: 'a hold ran',
  pinning: 'host memory was being page-locked',
  transfer: 'host memory was being copied into page-locked memory (a pageable copy)',
  stream: 'another stream had not come so far',
  window: 'as many operations of the stream were in flight as may be',
  peer: 'the route between two devices was being tested',
};

const CAUSES: Readonly<Record<string, string>> = {
  array: 'both use an array',
  event: 'waitEvent',
  stream: 'waitStream',
  host: 'a hold',
  [AWAIT]: 'the thread awaited it',
};

const DIRECTIONS: Readonly<Record<string, string>> = {
  upload: 'upload: from host memory to the device',
  download: 'download: from the device to host memory',
  device: 'within the device',
  peer: 'between two devices',
  host: 'within host memory',
};

function facts(lines: readonly (readonly [string, string | Node])[]): HTMLElement {
  return make('dl', {}, ...lines.flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]));
}
