// Mistakes that an emitter could make, as changes of a kernel's typed form: what random kernels are good for is measured
// by how many of them it takes until one comes to something else.
import type { Expr, FuncIr, KernelIr, ScalarType, Stmt } from '../../../src/compiler/ir/ir.js';

type Node = Expr | Stmt;
/** What stands instead of a node, whose parts are changed already; undefined takes a statement away. */
type Change = (node: Node, ir: KernelIr) => Node | undefined;

/** The kernel with every node changed. */
export function mutated(ir: KernelIr, change: Change): KernelIr {
  const funcs = new Map<FuncIr, FuncIr>();
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.flatMap((part: unknown) => visit(part) ?? []);
    if (value === null || typeof value !== 'object') return value;
    if ('kind' in value) {
      const made = Object.fromEntries(Object.entries(value).map(([key, part]) => [key, visit(part)]));
      return change(made as unknown as Node, ir);
    }
    // Arrays and variables are known by what they are, and stay.
    if (!('body' in value)) return value;
    const func = value as FuncIr;
    if (!funcs.has(func)) funcs.set(func, { ...func, body: visit(func.body) as readonly Stmt[] });
    return funcs.get(func)!;
  };
  const body = visit(ir.body) as readonly Stmt[];
  return { ...ir, body, funcs: ir.funcs.map((func) => visit(func) as FuncIr) };
}

const constant = (value: number, type: ScalarType = 'i32'): Expr => ({ kind: 'const', type, value });
const wide = (type: ScalarType): boolean => type === 'i64' || type === 'u64';
const cast = (type: ScalarType, operand: Expr): Expr => ({ kind: 'cast', type, operand });
const arithmetic = (op: '+' | '-' | '*' | '&' | '>>', type: ScalarType, left: Expr, right: Expr): Expr => ({
  kind: 'arithmetic',
  type,
  op,
  left,
  right,
});
const builtin = (name: string, type: ScalarType, ...args: readonly Expr[]): Expr => ({ kind: 'builtin', type, name, args });

/** Below a node, not the node itself. */
function below<T extends Node>(node: T, change: Change): T {
  const ir = { name: '', body: [{ kind: 'block', at: 0, body: [] }], arrays: [], funcs: [], indexRank: 0 } as const;
  const parts = Object.entries(node).map(([key, value]: [string, unknown]) => {
    const isTree = Array.isArray(value) || (value !== null && typeof value === 'object' && 'kind' in value);
    if (!isTree) return [key, value];
    const list = Array.isArray(value) ? value : [value];
    const { body } = mutated({ ...ir, body: list as readonly Stmt[] }, change);
    return [key, Array.isArray(value) ? body : body[0]];
  });
  return Object.fromEntries(parts) as T;
}

/** The block's first thread in place of each. */
const OF_FIRST: Change = (node) => {
  if (node.kind === 'thread' && node.vector === 'threadIdx') return constant(0);
  if (node.kind !== 'index' || node.axis !== 0) return node;
  const [block, size] = (['blockIdx', 'blockDim'] as const).map((vector): Expr => ({ kind: 'thread', type: 'i32', vector, axis: 0 }));
  return arithmetic('*', 'i32', block!, size!);
};

const isOf = (node: Node, op: string, type: ScalarType): node is Extract<Expr, { kind: 'arithmetic' }> =>
  node.kind === 'arithmetic' && node.op === op && node.type === type;
const isCall = (node: Node, name: string): node is Extract<Expr, { kind: 'builtin' }> => node.kind === 'builtin' && node.name === name;
const isCast = (node: Node, from: ScalarType, to: ScalarType): node is Extract<Expr, { kind: 'cast' }> =>
  node.kind === 'cast' && node.type === to && node.operand.type === from;
const atomicAs =
  (from: string, to: Extract<Expr, { kind: 'atomic' }>['op']): Change =>
  (node) =>
    node.kind === 'atomic' && node.op === from ? { ...node, op: to } : node;

export const MUTATIONS: Readonly<Record<string, Change>> = {
  // Arithmetic.
  'u32 is compared as i32': (node) =>
    node.kind === 'compare' && node.left.type === 'u32' ? { ...node, left: cast('i32', node.left), right: cast('i32', node.right) } : node,
  'u64 is compared as i64': (node) =>
    node.kind === 'compare' && node.left.type === 'u64' ? { ...node, left: cast('i64', node.left), right: cast('i64', node.right) } : node,
  'u32 shifts with its sign': (node) =>
    isOf(node, '>>', 'u32') ? cast('u32', arithmetic('>>', 'i32', cast('i32', node.left), node.right)) : node,
  'i32 shifts without its sign': (node) =>
    isOf(node, '>>', 'i32') ? cast('i32', arithmetic('>>', 'u32', cast('u32', node.left), node.right)) : node,
  'shift counts are of 4 bits': (node) =>
    (isOf(node, '<<', 'i32') || isOf(node, '<<', 'u32')) && node.right.type === 'i32'
      ? { ...node, right: arithmetic('&', 'i32', node.right, constant(15)) }
      : node,
  'f32 is computed in f64': (node) => (isOf(node, '+', 'f32') || isOf(node, '*', 'f32') ? { ...node, type: 'f64' } : node),
  'products and sums of f32 are fused': (node) => {
    if (!isOf(node, '+', 'f32')) return node;
    const [first, second] = isOf(node.left, '*', 'f32') ? [node.left, node.right] : [node.right, node.left];
    return isOf(first, '*', 'f32') ? builtin('fma', 'f32', first.left, first.right, second) : node;
  },
  'fma is rounded twice': (node) =>
    isCall(node, 'fma')
      ? arithmetic('+', node.type as ScalarType, arithmetic('*', node.type as ScalarType, node.args[0]!, node.args[1]!), node.args[2]!)
      : node,
  'quotients are rounded down': (node) => (isCall(node, 'idiv') && node.type === 'i32' ? { ...node, name: 'floordiv' } : node),
  'floor of a quotient truncates': (node) => (isCall(node, 'floordiv') ? { ...node, name: 'idiv' } : node),
  'round leaves the half out': (node) => (isCall(node, 'round') ? { ...node, name: 'floor' } : node),
  'floor truncates': (node) => (isCall(node, 'floor') ? { ...node, name: 'trunc' } : node),
  'clamp looks at the upper limit first': (node) => {
    if (!isCall(node, 'clamp')) return node;
    const type = node.type as ScalarType;
    return builtin('max', type, builtin('min', type, node.args[0]!, node.args[2]!), node.args[1]!);
  },
  'u32 becomes f32 by way of i32': (node) => (isCast(node, 'u32', 'f32') ? cast('f32', cast('i32', node.operand)) : node),
  'i64 becomes f32 by way of f64': (node) => (isCast(node, 'i64', 'f32') ? cast('f32', cast('f64', node.operand)) : node),
  'f64 becomes i64 by way of i32': (node) => (isCast(node, 'f64', 'i64') ? cast('i64', cast('i32', node.operand)) : node),
  'f64 becomes u64 by way of i64': (node) => (isCast(node, 'f64', 'u64') ? cast('u64', cast('i64', node.operand)) : node),
  'i64 becomes i32 by saturation': (node) => (isCast(node, 'i64', 'i32') ? cast('i32', cast('f64', node.operand)) : node),
  'i32 becomes u64 without its sign': (node) => (isCast(node, 'i32', 'u64') ? cast('u64', cast('u32', node.operand)) : node),
  'popcount is of 31 bits': (node) =>
    isCall(node, 'popcount') ? { ...node, args: [arithmetic('&', 'u32', node.args[0]!, constant(0x7fff_ffff, 'u32'))] } : node,
  // Control flow.
  'both sides of && and || are computed': (node) => {
    if (node.kind !== 'logical') return node;
    const variable = { name: 'early', type: 'bool', isConst: true } as const;
    return {
      kind: 'bind',
      type: 'bool',
      variable,
      value: node.right,
      body: { ...node, right: { kind: 'variable', type: 'bool', variable } },
    };
  },
  'both arms of ?: are computed': (node) => {
    if (node.kind !== 'select') return node;
    const variable = { name: 'arm', type: node.type, isConst: true };
    return {
      kind: 'bind',
      type: node.type,
      variable,
      value: node.otherwise,
      body: { ...node, otherwise: { kind: 'variable', type: node.type, variable } },
    };
  },
  'all threads take the branch of the first': (node) =>
    node.kind === 'if' ? { ...node, test: below({ ...node, then: [], otherwise: [] }, OF_FIRST).test } : node,
  'all threads loop as often as the first': (node) =>
    node.kind === 'loop' && node.test ? { ...node, test: below({ ...node, init: [], update: [], body: [] }, OF_FIRST).test } : node,
  'an else is lost': (node) => (node.kind === 'if' ? { ...node, otherwise: [] } : node),
  'continue leaves the loop': (node) => (node.kind === 'continue' ? { ...node, kind: 'break' } : node),
  'break leaves the turn': (node) =>
    node.kind === 'loop' && node.update.length > 0
      ? below(node, (inner) => (inner.kind === 'break' ? { ...inner, kind: 'continue' } : inner))
      : node,
  'return leaves the loop': (node) =>
    node.kind === 'loop' ? below(node, (inner) => (inner.kind === 'return' && !inner.value ? { kind: 'break', at: 0 } : inner)) : node,
  'who returned goes on': (node) => (node.kind === 'return' && node.value === undefined ? undefined : node),
  'a loop tests before its first turn': (node) => (node.kind === 'loop' ? { ...node, tested: 'before' } : node),
  'a loop turns once more': (node) => {
    if (node.kind !== 'loop' || node.test?.kind !== 'compare' || node.test.op !== '<') return node;
    return { ...node, test: { ...node.test, op: '<=' } };
  },
  // Places and memory.
  'x is taken for y': (node) => (node.kind === 'thread' && node.axis === 1 ? { ...node, axis: 0 } : node),
  'i and j are exchanged': (node, ir) =>
    node.kind === 'index' && ir.indexRank > 1 && node.axis < 2 ? { ...node, axis: node.axis === 0 ? 1 : 0 } : node,
  'all threads load what the first loads': (node) => (node.kind === 'load' && node.array.isReadOnly ? below(node, OF_FIRST) : node),
  'rows are taken for columns': (node) =>
    node.kind === 'load' && node.array.rank === 2 && node.array.extents[0] === node.array.extents[1]
      ? { ...node, indices: node.indices.toReversed() }
      : node,
  'a barrier is lost': (node) => (node.kind === 'barrier' && node.scope === 'block' ? undefined : node),
  'u8 saturates': (node) =>
    node.kind === 'store' && node.array.dtype === 'u8'
      ? { ...node, value: builtin('clamp', 'i32', node.value, constant(0), constant(255)) }
      : node,
  'i16 is stored as i8': (node) =>
    node.kind === 'store' && node.array.dtype === 'i16'
      ? {
          ...node,
          value: arithmetic(
            '>>',
            'i32',
            { ...arithmetic('*', 'i32', node.value, constant(1)), op: '<<', right: constant(24) } as Expr,
            constant(24),
          ),
        }
      : node,
  'i8 is loaded without its sign': (node) =>
    node.kind === 'load' && node.array.dtype === 'i8' ? arithmetic('&', 'i32', node, constant(255)) : node,
  'f16 is cut off': (node) => {
    if (node.kind !== 'store' || node.array.dtype !== 'f16') return node;
    const bits = arithmetic('&', 'u32', builtin('floatBits', 'u32', node.value), constant(0xffff_e000, 'u32'));
    return { ...node, value: builtin('bitsFloat', 'f32', bits) };
  },
  'who leaves an array goes on at its end': (node) => {
    if (node.kind !== 'load' || node.array.space !== 'parameter' || node.array.rank !== 1) return node;
    const [index] = node.indices;
    const extent: Expr = { kind: 'extent', type: 'i32', array: node.array, dimension: 0 };
    const most = arithmetic('-', 'i32', extent, constant(1));
    return { ...node, indices: [builtin('clamp', 'i32', cast('i32', index!), constant(0), most)] };
  },
  'who fails an assertion goes on': (node) => (node.kind === 'assert' ? undefined : node),
  // Atomics, random numbers, helpers.
  'atomics give what they left': (node) => {
    if (node.kind !== 'atomic' || node.op !== 'add' || wide(node.type) || node.type === 'i32') return node;
    return arithmetic('+', node.type, node, node.args[0]!);
  },
  'atomicSub adds': atomicAs('sub', 'add'),
  'atomicMin keeps the most': atomicAs('min', 'max'),
  'atomicMax stores': atomicAs('max', 'exchange'),
  'atomicAnd stores': atomicAs('and', 'exchange'),
  'atomicXor sets': atomicAs('xor', 'or'),
  'atomicExch adds': (node) => (node.kind === 'atomic' && node.op === 'exchange' && node.type !== 'f32' ? { ...node, op: 'or' } : node),
  'atomicCAS stores whatever was there': (node) =>
    node.kind === 'atomic' && node.op === 'cas' ? { ...node, op: 'exchange', args: [node.args[1]!] } : node,
  'seed and sequence are exchanged': (node) => (node.kind === 'seed' ? { ...node, seed: node.sequence, sequence: node.seed } : node),
  'a number is drawn for nothing': (node) => {
    if (node.kind !== 'draw') return node;
    const variable = { name: 'drawn', type: node.type, isConst: true };
    return { kind: 'bind', type: node.type, variable, value: node, body: node };
  },
  'arguments of helpers are exchanged': (node) => {
    const [first, second] = node.kind === 'call' ? node.args : [];
    return node.kind === 'call' && second && first!.type === second.type ? { ...node, args: node.args.toReversed() } : node;
  },
};
