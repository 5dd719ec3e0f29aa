// Kernel IR to CUDA C++: the one emitter, whose text both devices compile.
//
// Arguments follow the 'shaped' convention: an array is its pointer and one int a dimension; three extents come last,
// then, in checked kernels, the launch's fault slot and word. Threads beyond the extents leave at once.
import type { DType } from '../core/elements/dtype.js';
import type { Params } from '../core/kernels/kernel.js';
import { CPP_TYPE, ExpressionEmitter, funcName, indented, sanitized } from './emit-expression.js';
import type { FuncIr, KernelIr, ScalarType, Stmt } from './ir.js';
import { FAULT_PRELUDE, helperLines } from './prelude.js';

export interface EmitOptions {
  readonly isChecked: boolean;
  readonly maxThreadsPerBlock: number | undefined;
}

export interface EmittedKernel {
  readonly source: string;
  readonly entry: string;
  /** For each line of the source, the offset in the function's text it comes from; -1 for none. */
  readonly offsets: readonly number[];
}

interface Line {
  readonly text: string;
  readonly at: number;
}

/** What an element is in memory. bool is one byte, of which only zero and not zero count. */
const STORAGE_TYPE: { readonly [D in DType]?: string } = {
  bool: 'unsigned char',
  i8: 'signed char',
  u8: 'unsigned char',
  i16: 'short',
  u16: 'unsigned short',
  i32: 'int',
  u32: 'unsigned',
  f32: 'float',
  f64: 'double',
};

function storageType(dtype: DType): string {
  const type = STORAGE_TYPE[dtype];
  if (type === undefined) throw new Error(`No storage type for ${dtype}.`);
  return type;
}

export function emitKernel(ir: KernelIr, params: Params, options: EmitOptions): EmittedKernel {
  const entry = `${/^\d/.test(ir.name) ? 'k' : ''}${sanitized(ir.name)}_kernel`;
  const emitter = new StatementEmitter(options.isChecked);
  const list = parameterList(params, options.isChecked, emitter.expressions);
  const body = emitter.block(ir.body);
  const funcs = ir.funcs.map((func) => emitFunc(func, emitter.expressions.helpers));
  const bounds = options.maxThreadsPerBlock === undefined ? '' : ` __launch_bounds__(${options.maxThreadsPerBlock})`;
  const lines: Line[] = [
    ...generated(options.isChecked ? FAULT_PRELUDE : []),
    ...generated(helperLines(emitter.expressions.helpers)),
    ...generated(funcs.flat()),
    ...generated([`extern "C" __global__ void${bounds} ${entry}(${list.join(', ')}) {`]),
    ...generated(indented(guard(ir.indexRank))),
    ...body.map((line) => ({ text: `  ${line.text}`, at: line.at })),
    ...generated(['}']),
  ];
  return { source: `${lines.map((line) => line.text).join('\n')}\n`, entry, offsets: lines.map((line) => line.at) };
}

function generated(lines: readonly string[]): Line[] {
  return lines.map((text) => ({ text, at: -1 }));
}

function parameterList(params: Params, isChecked: boolean, names: ExpressionEmitter): string[] {
  const list: string[] = [];
  for (const [key, param] of Object.entries(params)) {
    const name = names.parameter(key);
    if (param.kind === 'scalar') {
      list.push(`${storageType(param.dtype)} ${name}`);
      continue;
    }
    list.push(`${param.access === 'in' ? 'const ' : ''}${storageType(param.dtype)}* ${name}`);
    for (let dimension = 0; dimension < param.rank; dimension++) list.push(`int ${names.extent(key, dimension)}`);
  }
  list.push('int mr_n0', 'int mr_n1', 'int mr_n2');
  if (isChecked) list.push('MrFaultSlot* mr_fault', 'unsigned* mr_fault_word');
  return list;
}

/** The launch indices in array order (the last is x), and the tail guard. */
function guard(rank: KernelIr['indexRank']): string[] {
  const global = (axis: string): string => `int(blockIdx.${axis} * blockDim.${axis} + threadIdx.${axis})`;
  if (rank === 0) return [`if (${global('x')} >= mr_n0 || ${global('y')} >= mr_n1 || ${global('z')} >= mr_n2) return;`];
  const axes = ['x', 'y', 'z'].slice(0, rank);
  const names = ['mr_i', 'mr_j', 'mr_k'].slice(0, rank).toReversed();
  const tests = names.map((name, axis) => `${name} >= mr_n${axis}`);
  return [...names.map((name, axis) => `const int ${name} = ${global(axes[axis]!)};`).toReversed(), `if (${tests.join(' || ')}) return;`];
}

/** A helper: no arrays, so nothing to check. */
function emitFunc(func: FuncIr, helpers: Set<string>): string[] {
  const emitter = new StatementEmitter(false);
  const params = func.params.map((variable) => `${CPP_TYPE[variable.type as ScalarType]} ${emitter.expressions.nameOf(variable)}`);
  const body = emitter.block(func.body).map((line) => line.text);
  for (const helper of emitter.expressions.helpers) helpers.add(helper);
  return [
    `static __device__ __forceinline__ ${CPP_TYPE[func.result]} ${funcName(func.name)}(${params.join(', ')}) {`,
    ...indented(body),
    '}',
  ];
}

class StatementEmitter {
  readonly expressions: ExpressionEmitter;

  constructor(isChecked: boolean) {
    this.expressions = new ExpressionEmitter(isChecked);
  }

  block(body: readonly Stmt[]): Line[] {
    this.expressions.enterBlock();
    const lines = body.flatMap((stmt) => this.#statement(stmt));
    this.expressions.leaveBlock();
    return lines;
  }

  #statement(stmt: Stmt): Line[] {
    const own = this.#lines(stmt);
    const before = this.expressions.before.map((text) => ({ text, at: stmt.at }));
    this.expressions.before = [];
    return [...before, ...own];
  }

  #lines(stmt: Stmt): Line[] {
    const { at } = stmt;
    const line = (text: string): Line[] => [{ text, at }];
    const { expressions } = this;
    switch (stmt.kind) {
      case 'declare': {
        const type = stmt.variable.type as ScalarType;
        const value = stmt.value === undefined ? expressions.constant(type, 0) : expressions.emit(stmt.value);
        return line(`${stmt.variable.isConst ? 'const ' : ''}${CPP_TYPE[type]} ${expressions.nameOf(stmt.variable)} = ${value};`);
      }
      case 'assign':
        return line(`${expressions.nameOf(stmt.variable)} = ${expressions.emit(stmt.value)};`);
      case 'store':
        return line(this.#store(stmt));
      case 'effect':
        return line(`${stmt.expr.kind === 'atomic' ? expressions.atomicCall(stmt.expr) : `(void)(${expressions.emit(stmt.expr)})`};`);
      case 'fence':
        return line('__threadfence();');
      case 'barrier':
      case 'print':
      case 'assert':
        throw new Error(`No text for '${stmt.kind}'.`);
      case 'if': {
        const test = expressions.emit(stmt.test);
        // The checks of the test stand before the arms, whose own must not be mixed with them.
        const before = this.#taken(at);
        const then = this.#nested(stmt.then);
        const otherwise = stmt.otherwise.length === 0 ? [] : [...line('} else {'), ...this.#nested(stmt.otherwise)];
        return [...before, ...line(`if (${test}) {`), ...then, ...otherwise, ...line('}')];
      }
      case 'loop':
        return this.#loop(stmt);
      case 'block':
        return [...line('{'), ...this.#nested(stmt.body), ...line('}')];
      case 'break':
      case 'continue':
        return line(`${stmt.kind};`);
      case 'return':
        return line(stmt.value === undefined ? 'return;' : `return ${expressions.emit(stmt.value)};`);
    }
  }

  #taken(at: number): Line[] {
    const { before } = this.expressions;
    this.expressions.before = [];
    return before.map((text) => ({ text, at }));
  }

  #nested(body: readonly Stmt[]): Line[] {
    return this.block(body).map(({ text, at }) => ({ text: `  ${text}`, at }));
  }

  #store(stmt: Extract<Stmt, { kind: 'store' }>): string {
    const { array, indices, value } = stmt;
    // The index is computed before the value, as the text reads.
    const element = this.expressions.element(array, indices);
    const text = this.expressions.emit(value);
    const type = storageType(array.dtype);
    const isNarrow = type !== CPP_TYPE[value.type as ScalarType];
    return `${element} = ${isNarrow ? `(${type})${value.kind === 'const' || value.kind === 'variable' ? text : `(${text})`}` : text};`;
  }

  /**
   * Plain where test and update are plain expressions. Where they need statements of their own, the loop is written out:
   * what C++ would do in the head is done at the top of the body, so that `continue` still passes it.
   */
  #loop(stmt: Extract<Stmt, { kind: 'loop' }>): Line[] {
    const { at, tested } = stmt;
    const line = (text: string): Line => ({ text, at });
    this.expressions.enterBlock();
    const init = stmt.init.flatMap((inner) => this.#statement(inner));
    const test = this.expressions.capture(() => (stmt.test === undefined ? undefined : this.expressions.emit(stmt.test)));
    const update = this.#captured(() => stmt.update.flatMap((inner) => this.#statement(inner)));
    const isPlainUpdate = stmt.update.every((inner) => inner.kind === 'assign') && update.length === stmt.update.length;
    const body = this.#nested(stmt.body);
    this.expressions.leaveBlock();
    const leave = test.result === undefined ? [] : [...test.before, `if (!(${test.result})) break;`];
    const isPlainTest = test.before.length === 0;
    let head: Line[];
    let tail = line('}');
    if (tested === 'after' && isPlainTest) {
      head = [line('do {')];
      tail = line(`} while (${test.result ?? 'true'});`);
    } else if (tested === 'after' || !isPlainUpdate) {
      const top = [...update.map((inner) => inner.text), ...(tested === 'after' ? leave : [])];
      const again = this.expressions.temporary();
      head = [`for (bool ${again} = false;; ${again} = true) {`, `  if (${again}) {`, ...indented(indented(top)), '  }'].map(line);
      if (tested === 'before') head.push(...indented(leave).map(line));
    } else {
      const updates = update.map((inner) => inner.text.replace(/;$/, '')).join(', ');
      const inHead = init.length === 1 && stmt.init[0]!.kind === 'declare' ? init.pop()!.text : ';';
      const isWhile = inHead === ';' && updates === '';
      const condition = isPlainTest ? (test.result ?? '') : '';
      head = [line(isWhile ? `while (${condition || 'true'}) {` : `for (${inHead} ${condition}; ${updates}) {`)];
      if (!isPlainTest) head.push(...indented(leave).map(line));
    }
    const loop = [...head, ...body, tail];
    return init.length === 0
      ? loop
      : [line('{'), ...[...init, ...loop].map(({ text, at: from }) => ({ text: `  ${text}`, at: from })), line('}')];
  }

  /** Statements for elsewhere: the checks they make do not hold here. */
  #captured(run: () => Line[]): Line[] {
    this.expressions.enterBlock();
    const lines = run();
    this.expressions.leaveBlock();
    return lines;
  }
}
