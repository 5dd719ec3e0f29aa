// Emits CUDA C++ from kernel IR, for both devices.
//
// Arguments follow the 'shaped' convention: an array is a pointer and one int per dimension; three extents come last. A kernel with a grid
// barrier then takes the stream's slot, and a kernel that reports faults takes the launch's fault slot and fault word. Threads outside the
// extents return at once.
import type { Params } from '../../core/kernels/kernel.js';
import { hasGridBarrier } from '../analysis/barriers.js';
import { blockPrelude } from './block-prelude.js';
import { GRID_PRELUDE } from './grid-prelude.js';
import { elementsOf, indexDeclaration, localArray, RegionEmitter } from './region-emitter.js';
import { INDEX_NAMES, Names } from './names.js';
import { StatementEmitter } from './statement.js';
import {
  CPP_TYPE,
  declaration,
  funcName,
  generated,
  indented,
  type Line,
  nested,
  type Parameter,
  sanitized,
  storageType,
} from './cpp-text.js';
import type { ArrayRef, Axis, FuncIr, KernelIr, ScalarType, Variable } from '../ir/ir.js';
import { DYNAMIC_BYTES_PRELUDE, FAULT_PRELUDE, helperLines } from './prelude.js';
import { rangeTest } from './ranges.js';
import { oneRegion, planRegions } from '../analysis/region-plan.js';
import { assertionsIn } from '../ir/walk.js';
import { rangePrelude, withFastVersion } from './loop-versioning.js';

export interface EmitOptions {
  readonly isChecked: boolean;
  readonly maxThreadsPerBlock: number | undefined;
}

export interface EmittedKernel {
  readonly source: string;
  /** For each line of the source, the offset in the function's source that it comes from; -1 for none. */
  readonly offsets: readonly number[];
}

/** The name of the emitted kernel function. */
export function entryOf({ name }: KernelIr): string {
  return `${/^\d/.test(name) ? 'k' : ''}${sanitized(name)}_kernel`;
}

/** Throws KernelTextError when some threads of a block may not reach a barrier. */
export function emitKernel(ir: KernelIr, params: Params, options: EmitOptions): EmittedKernel {
  const { isChecked } = options;
  const plan = planRegions(ir) ?? (isChecked && canSkipChecks(ir) ? oneRegion(ir) : undefined);
  const emitter = new StatementEmitter(isChecked, new Names(), assertionsIn(ir));
  const isReporting = reports(ir, isChecked);
  const syncsGrid = hasGridBarrier(ir);
  const parameters = parametersOf(ir, params, isChecked, emitter);
  const memory = declaredMemory(ir, emitter);
  emitter.cuda.parameters.push(...parameters, ...sharedParameters(ir, emitter));
  const body = plan === undefined ? threadBody(ir, emitter) : new RegionEmitter(ir, plan, isChecked, emitter).body();
  const { helpers } = emitter.expressions;
  const funcs = ir.funcs.map((func) => emitFunc(func, helpers));
  const bounds = options.maxThreadsPerBlock === undefined ? '' : ` __launch_bounds__(${options.maxThreadsPerBlock})`;
  const isSized = ir.arrays.some((array) => array.space === 'dynamic shared');
  const lines: Line[] = [
    ...generated(plan === undefined ? [] : blockPrelude(ir.indexRank)),
    ...generated(syncsGrid ? GRID_PRELUDE : []),
    ...generated(isReporting ? FAULT_PRELUDE : []),
    ...generated(isSized ? DYNAMIC_BYTES_PRELUDE : []),
    ...generated(rangePrelude(emitter.cuda.rangeText)),
    ...generated(helperLines(helpers)),
    ...generated(funcs.flat()),
    ...emitter.cuda.outlined,
    ...generated([
      `extern "C" __global__ void${bounds} ${entryOf(ir)}(${plan === undefined ? '' : 'MR_BLOCK_FORM '}${parameters.map(declaration).join(', ')}) {`,
    ]),
    ...generated(indented([...memory, ...(syncsGrid ? ['MR_BEGIN_GRID(mr_stream)'] : [])])),
    ...nested(body),
    ...generated(['}']),
  ];
  const source = `${lines.map((line) => line.text).join('\n')}\n`;
  return { source, offsets: lines.map((line) => line.at) };
}

/** Whether the CPU device can test once per block that no index leaves an array. Then a kernel without barriers becomes a region too. */
function canSkipChecks(ir: KernelIr): boolean {
  const test = rangeTest(ir.body, new Names(), new Set(), ir.indexRank);
  return test !== undefined && test.holds.length > 0;
}

/** Whether the kernel takes the two hidden fault parameters. */
export function reports(ir: KernelIr, isChecked: boolean): boolean {
  return isChecked || assertionsIn(ir).length > 0;
}

/** The user's parameters, then the hidden ones. */
export function parametersOf(ir: KernelIr, params: Params, isChecked: boolean, { expressions: { names } }: StatementEmitter): Parameter[] {
  const list: Parameter[] = [];
  for (const [key, param] of Object.entries(params)) {
    const name = names.parameter(key);
    if (param.kind === 'scalar') {
      list.push({ type: storageType(param.dtype), name });
      continue;
    }
    list.push({ type: `${param.access === 'in' ? 'const ' : ''}${storageType(param.dtype)}*`, name });
    for (let dimension = 0; dimension < param.rank; dimension++) list.push({ type: 'int', name: `${name}n${dimension}` });
  }
  list.push(...['mr_n0', 'mr_n1', 'mr_n2'].map((name) => ({ type: 'int', name })));
  if (hasGridBarrier(ir)) list.push({ type: 'int', name: 'mr_stream' });
  if (reports(ir, isChecked)) list.push({ type: 'MrFaultSlot*', name: 'mr_fault' }, { type: 'unsigned*', name: 'mr_fault_word' });
  return list;
}

/** Parameters that pass shared memory to another function. */
function sharedParameters(ir: KernelIr, { expressions: { names } }: StatementEmitter): Parameter[] {
  return ir.arrays.flatMap((array) => {
    if (array.space === 'local') return [];
    const own = { type: `${storageType(array.dtype)}*`, name: names.array(array) };
    return array.space === 'dynamic shared' ? [own, { type: 'int', name: names.extent(array, 0) }] : [own];
  });
}

/** Declares shared memory. All dynamic arrays are views of the same bytes. */
function declaredMemory(ir: KernelIr, { expressions: { names } }: StatementEmitter): string[] {
  const lines: string[] = [];
  const dynamic = (array: ArrayRef): string[] => {
    const type = storageType(array.dtype);
    const name = names.array(array);
    return [
      `${type}* const ${name} = reinterpret_cast<${type}*>(mr_dynamic);`,
      `const int ${name}n0 = (int)(mr_dynamic_bytes() / sizeof(${type}));`,
    ];
  };
  for (const array of ir.arrays) {
    if (array.space === 'shared') lines.push(`__shared__ ${storageType(array.dtype)} ${names.array(array)}[${elementsOf(array)}];`);
  }
  const views = ir.arrays.filter((array) => array.space === 'dynamic shared');
  if (views.length > 0) lines.push('extern __shared__ __align__(16) unsigned char mr_dynamic[];', ...views.flatMap(dynamic));
  return lines;
}

/** The body of one thread. */
function threadBody(ir: KernelIr, emitter: StatementEmitter): Line[] {
  const arrays = ir.arrays.filter((array) => array.space === 'local').map((array) => localArray(array, emitter.expressions));
  const { indexRank } = ir;
  const indices = ([0, 1, 2] as const).slice(0, indexRank).map((axis) => indexDeclaration(indexRank, axis));
  const place = { indexRank, known: new Set<Variable>(), head: [...indices, ...arrays], isClosed: true };
  return [...generated([...guard(indexRank), ...arrays]), ...withFastVersion(ir.body, place, emitter)];
}

/** The launch indices in array order (the last is x), and the bounds guard for threads outside the extents. */
function guard(rank: KernelIr['indexRank']): string[] {
  const global = (axis: string): string => `int(blockIdx.${axis} * blockDim.${axis} + threadIdx.${axis})`;
  if (rank === 0) return [`if (${global('x')} >= mr_n0 || ${global('y')} >= mr_n1 || ${global('z')} >= mr_n2) return;`];
  const axes = ([0, 1, 2] as const).slice(0, rank);
  const tests = axes.map((axis) => `${INDEX_NAMES[rank - 1 - axis]} >= mr_n${axis}`);
  return [...axes.map((axis: Axis) => indexDeclaration(rank, axis)), `if (${tests.join(' || ')}) return;`];
}

/** Emits a helper function. It has no arrays, so there are no indices to check. */
export function emitFunc(func: FuncIr, helpers: Set<string>): string[] {
  const emitter = new StatementEmitter(false);
  const { names } = emitter.expressions;
  const params = func.params.map((variable) => `${CPP_TYPE[variable.type as ScalarType]} ${names.variable(variable)}`);
  const body = emitter.block(func.body).map((line) => line.text);
  for (const helper of emitter.expressions.helpers) helpers.add(helper);
  return [
    `static __device__ __forceinline__ ${CPP_TYPE[func.result]} ${funcName(func.name)}(${params.join(', ')}) {`,
    ...indented(body),
    '}',
  ];
}
