// Emits kernel IR as C++ for the CPU device only: groups of threads that are neighbours along x run together in SIMD lanes (the shim's
// simd.h). The emitted function has the same parameters as the CUDA form. docs/decisions/0019 gives the reasons.
import type { Params } from '../../core/kernels/kernel.js';
import { oneRegion, planRegions } from '../analysis/region-plan.js';
import { placeVariables } from '../analysis/storage.js';
import { analyse } from '../analysis/uniformity.js';
import { emitFunc, entryOf, parametersOf, reports } from '../emission/cuda.js';
import { ExpressionEmitter } from '../emission/expression.js';
import { FAULT_PRELUDE, helperLines } from '../emission/prelude.js';
import { elementsOf, RegionEmitter } from '../emission/region-emitter.js';
import { StatementEmitter } from '../emission/statement.js';
import { declaration, generated, indented, nested, storageType } from '../emission/cpp-text.js';
import type { FuncIr, KernelIr, ScalarType } from '../ir/ir.js';
import { assignedIn } from '../ir/walk.js';
import { SimdExpressions, simdFunctionName } from './expressions.js';
import { simdType } from './operators.js';
import { SimdRegions } from './simd-regions.js';
import { Scopes } from './mask-scopes.js';
import { SimdStatements } from './statements.js';
import { isTaken, usesWide } from './suitability.js';
import { formOf } from './block-fusion.js';

/** These precede the parameters, so that they are passed in registers. */
const INDICES = ['mr_index3', 'mr_index3 blockIdx', 'mr_index3 blockDim', 'mr_index3 gridDim'] as const;

/** Undefined for a kernel that has no SIMD form. */
export function emitSimd(ir: KernelIr, params: Params, isChecked: boolean): string | undefined {
  if (!isTaken(ir)) return undefined;
  const plan = planRegions(ir) ?? oneRegion(ir);
  const statements = new StatementEmitter(isChecked);
  const parameters = parametersOf(ir, params, isChecked, statements).map(declaration);
  const memory = blockMemory(ir, statements);
  const { crossing } = placeVariables(ir.body, plan);
  const uniformity = analyse(ir, { indexRank: ir.indexRank, differing: crossing });
  const form = formOf(ir, isChecked);
  const regions = new SimdRegions(ir, plan, isChecked, statements, crossing, form);
  const body = new RegionEmitter(ir, plan, isChecked, statements, (parts) => regions.write(parts)).body();
  const { helpers } = statements.expressions;
  const { isFused, narrow } = form;
  const blocks = isFused ? 'mr_blocks mr_run' : 'mr_block';
  const funcs = ir.funcs.flatMap((func) => [...emitFunc(func, helpers), ...simdFunction(func, helpers)]);
  const lines = [
    ...generated(usesWide(ir, (expr) => uniformity.causeOf(expr) !== undefined) ? ['#define MR_WIDE_LANES 1'] : []),
    ...generated(narrow === undefined ? [] : [`#define MR_NARROW_LANES ${narrow.bytes}`]),
    ...generated(['#include <simd.h>', ...(isFused ? ['#include <simd_blocks.h>'] : [])]),
    ...generated(reports(ir, isChecked) ? FAULT_PRELUDE : []),
    ...generated(helperLines(helpers)),
    ...generated(funcs),
    ...generated([
      `extern "C" __global__ ${isFused ? 'bool' : 'void'} ${entryOf(ir)}(${[...INDICES, blocks, ...parameters].join(', ')}) {`,
    ]),
    ...generated(indented(memory)),
    ...nested(body),
    ...generated(isFused ? ['  return true;', '}'] : ['}']),
  ];
  return `${lines.map((line) => line.text).join('\n')}\n`;
}

/** Declares the block's shared memory once; a thread-local variable would be looked up at every use. */
function blockMemory(ir: KernelIr, { expressions: { names } }: StatementEmitter): string[] {
  const lines: string[] = [];
  for (const array of ir.arrays) {
    const type = storageType(array.dtype);
    const name = names.array(array);
    if (array.space === 'shared') lines.push(`__attribute__((aligned(64))) ${type} ${name}[${elementsOf(array)}];`);
    if (array.space !== 'dynamic shared') continue;
    lines.push(`${type}* const ${name} = reinterpret_cast<${type}*>(mr_dynamic_shared);`);
    lines.push(`const int ${name}n0 = (int)(mr_dynamic_shared_bytes / sizeof(${type}));`);
  }
  return lines;
}

/** A helper whose arguments vary between SIMD lanes. */
function simdFunction(func: FuncIr, helpers: Set<string>): string[] {
  const scalar = new ExpressionEmitter(false);
  const scopes = new Scopes();
  const uniformity = analyse(func, { indexRank: 0, differing: func.params });
  const expressions = new SimdExpressions(scalar, scopes, (expr) => uniformity.causeOf(expr));
  const type = simdType(func.result);
  const statements = new SimdStatements(expressions, {
    declared: new Set(),
    assertions: [],
    partedLoops: uniformity.partedLoops,
    assigned: assignedIn(func.body),
    result: 'mr_result',
  });
  const params = func.params.map((variable) => `${simdType(variable.type as ScalarType)} ${scalar.names.variable(variable)}`);
  const root = scopes.make(false);
  const lines = statements.scoped(root, () => statements.block(func.body), -1).map(({ text }) => text);
  for (const helper of scalar.helpers) helpers.add(helper);
  return [
    `static MR_INLINE ${type} ${simdFunctionName(func.name)}(${[`mr_lane_mask ${root.mask}`, ...params].join(', ')}) {`,
    `  ${type} mr_result{};`,
    ...indented(lines),
    '  return mr_result;',
    '}',
  ];
}
