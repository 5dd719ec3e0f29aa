// The variables of a module on one device. Every launch of a kernel of the module counts as a use of every variable, because the source
// does not tell which ones the kernel uses.
//
// A variable has a Storage from the first call of `global` on. Launches before that are remembered by their points, so that a later write
// of the variable comes after them.
// Thread: owner.
import type { Encoder } from '../../protocol/encoder.js';
import { Access, MAX_LAUNCH_ARGS, MemorySpace } from '../../protocol/protocol.gen.js';
import { badArgument } from '../base/arguments.js';
import { DeviceLostError, InternalError, MillraceError } from '../base/errors.js';
import type { DeviceCore } from '../device/device-core.js';
import type { ModulePlan } from '../kernels/module-plan.js';
import type { ModuleVariable } from '../kernels/module.js';
import type { RecordAccesses } from '../ordering/access-tracker.js';
import { Storage } from './storage.js';

interface Asked extends ModuleVariable {
  readonly storage: Storage;
}

class ModuleVariables {
  readonly #core: DeviceCore;
  readonly #plan: ModulePlan;
  readonly #asked: Asked[] = [];
  /** Memory without bytes that stands for all variables: its users have launched a kernel of the module. */
  readonly #launches: Storage;

  constructor(core: DeviceCore, plan: ModulePlan) {
    this.#core = core;
    this.#plan = plan;
    this.#launches = new Storage(MemorySpace.DEVICE, 0, 0, 0, core);
  }

  /** Adds the variables to a launch of a kernel of the module, behind `at` entries of the record. Returns the number of entries then. */
  addTo(record: RecordAccesses, encoder: Encoder, at: number): number {
    if (at + this.#asked.length > MAX_LAUNCH_ARGS) throw this.#tooMany(at);
    for (const { storage, isConstant } of this.#asked) {
      encoder.variableArg(at++, isConstant ? Access.READ : Access.READ_WRITE, storage.handle);
      record.add(storage, 0, storage.byteLength, !isConstant);
    }
    record.add(this.#launches, 0, 0, false);
    return at;
  }

  /** The memory of a variable, the same object for every call. */
  of(variable: ModuleVariable, byteLength: number): Storage {
    const { name, isConstant } = variable;
    const known = this.#asked.find((asked) => asked.name === name && asked.storage.byteLength === byteLength);
    if (known !== undefined) return known.storage;
    const core = this.#core;
    const storage = new Storage(MemorySpace.DEVICE, core.handles.memory.take(), 0, byteLength, core);
    // A driver gives other devices no access to variables of modules, whatever was granted.
    storage.grant = undefined;
    storage.takeUsersOf(this.#launches, !isConstant);
    this.#asked.push({ name, isConstant, storage });
    this.#bind(name, storage);
    return storage;
  }

  #bind(name: string, { handle, byteLength }: Storage): void {
    const { channel, failures } = this.#core;
    const failure = channel.reserveFailure();
    const bound = channel.bindVariable(handle, { module: this.#plan.number, name, byteLength, failure });
    failures.expect(
      failure,
      bound.then(
        () => undefined,
        (error: unknown) => {
          this.#forget(handle);
          // Everything else on the device reports that it is lost.
          if (error instanceof DeviceLostError) return undefined;
          return error instanceof MillraceError ? error : new InternalError('ERR_MILLRACE_INTERNAL', String(error));
        },
      ),
    );
  }

  /** The variable does not exist: launches do not use it, and the next `global` looks for it again. */
  #forget(handle: number): void {
    this.#asked.splice(
      this.#asked.findIndex(({ storage }) => storage.handle === handle),
      1,
    );
  }

  #tooMany(entries: number): Error {
    const count = this.#asked.length;
    const message =
      `The arguments of the launch (${entries}) and the requested variables of its module (${count}) ` +
      `exceed the limit of a launch (${MAX_LAUNCH_ARGS}).`;
    return badArgument('kernel', entries + count, message, MAX_LAUNCH_ARGS);
  }
}

/** The variables of a module on a device. */
export function variablesOf(core: DeviceCore, plan: ModulePlan): ModuleVariables {
  if (plan.variables instanceof ModuleVariables) return plan.variables;
  const made = new ModuleVariables(core, plan);
  plan.variables = made;
  return made;
}
