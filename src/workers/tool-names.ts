// Names for NVTX tools, such as Nsight: what `launch`, `copy` and `read` submit has the label of the call, and items of pipelines and their stages
// are ranges of the process. Only while a tool listens.
// Thread: owner.
import { copyTrace, type ItemMessage, itemTrace, launchTrace, type StageMessage, stageTrace, type Trace } from '../core/base/trace.js';
import type { Binding } from '../native/binding.js';
import type { Encoder } from '../protocol/encoder.js';

type Names = Pick<Binding, 'nvtxState' | 'nvtxLabel' | 'nvtxStart' | 'nvtxEnd'>;

/** Begins to name what this thread does, if a tool asks for it by NVTX_INJECTION64_PATH. */
export function nameForTools(binding: Names, encoder: Pick<Encoder, 'keepLabels'>): void {
  const state = binding.nvtxState();
  if (state === undefined) return;
  if (state !== '') {
    const message = `The tool that NVTX_INJECTION64_PATH names gets no names of operations: ${state}.`;
    process.emitWarning(message, { type: 'MillraceWarning', code: 'MILLRACE_NVTX' });
    return;
  }
  const labels: Map<string, number> = new Map();
  const labelOf = (name: string): number => {
    const known = labels.get(name);
    if (known !== undefined) return known;
    const label = binding.nvtxLabel(name);
    // There are 65,535. A program that makes up further names keeps none of them.
    if (label !== 0) labels.set(name, label);
    return label;
  };
  /** Those of the running calls, the innermost last: a copy may consist of copies. */
  const calls: number[] = [];
  encoder.keepLabels(() => calls.at(-1) ?? 0);
  for (const [{ start, end }, kind] of [
    [launchTrace, 'launch'],
    [copyTrace, 'copy'],
  ] as const) {
    start.subscribe((message) => void calls.push(labelOf((message as { readonly name?: string }).name ?? kind)));
    end.subscribe(() => void calls.pop());
  }
  ranges<ItemMessage>(binding, itemTrace, ({ lane, attempt }) => `item on lane ${lane}${attempt === 1 ? '' : `, attempt ${attempt}`}`);
  ranges<StageMessage>(binding, stageTrace, ({ lane, name }) => `${name} on lane ${lane}`);
}

function ranges<M extends object>(binding: Names, { start, asyncEnd }: Trace, nameOf: (message: M) => string): void {
  const begun: WeakMap<object, number> = new WeakMap();
  start.subscribe((message) => void begun.set(message as M, binding.nvtxStart(nameOf(message as M))));
  asyncEnd.subscribe((message) => {
    const range = begun.get(message as M);
    if (range !== undefined) binding.nvtxEnd(range);
  });
}
