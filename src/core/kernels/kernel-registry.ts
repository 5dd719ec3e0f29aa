// The kernels and modules of one device: each is built once, at its first launch there or by `device.compile`.
//
// When a build fails for a reason outside the source (no compiler, no memory, a signal), its plan is given up. The next launch or
// `compile` builds the kernel again under a new handle. Launches submitted before fail with the error of the first build.
// Thread: owner.
import { type CompileMessage, compileTrace, isTraced, tracePromise } from '../base/trace.js';
import { CompileError, DeviceLostError, InternalError, UnsupportedError } from '../base/errors.js';
import type { Channel } from '../channel/channel.js';
import { checkKernel, KernelPlan } from './kernel-plan.js';
import type { KernelFacts } from '../timeline/failure-errors.js';
import type { Kernel } from './kernel.js';
import { ModulePlan } from './module-plan.js';
import type { ModuleSource } from './module.js';

/** The number of given-up plans that stay known by their handles, for the errors of their launches. */
const KEPT = 1024;

/** Kernel handles. */
export interface PlanHandles {
  take(): number;
  /** Call it when no later launch will name the handle. */
  giveUp(handle: number): void;
}

export class KernelRegistry {
  readonly #device: string;
  readonly #channel: Channel;
  readonly #handles: PlanHandles;
  readonly #plans: WeakMap<Kernel, KernelPlan> = new WeakMap();
  readonly #byHandle: Map<number, KernelFacts> = new Map();
  readonly #modules: WeakMap<ModuleSource, ModulePlan> = new WeakMap();
  readonly #givenUp: number[] = [];
  #lastModule = 0;

  constructor(device: string, channel: Channel, handles: PlanHandles) {
    this.#device = device;
    this.#channel = channel;
    this.#handles = handles;
  }

  /** The kernel's plan on this device. Throws ArgumentError for a value that is not a kernel, and for a kernel with too many arguments. */
  of(kernel: Kernel): KernelPlan {
    return this.#plans.get(kernel) ?? this.#make(kernel);
  }

  /** The module's plan on this device. The first call starts the build. */
  module(source: ModuleSource): ModulePlan {
    let plan = this.#modules.get(source);
    if (plan === undefined) {
      const number = ++this.#lastModule;
      plan = new ModulePlan(source, number, this.#channel.loadModule(number, source.closed()));
      this.#modules.set(source, plan);
      // The module's kernels and variables report the error.
      plan.loaded.catch((error: unknown) => {
        if (mayPass(error)) this.#modules.delete(source);
      });
    }
    return plan;
  }

  /** The plan with this handle, or what `takeFor` got. */
  byHandle(handle: number): KernelFacts | undefined {
    return this.#byHandle.get(handle);
  }

  /** A handle for what is launched as a kernel and that no compiler builds. */
  takeFor(facts: KernelFacts): number {
    const handle = this.#handles.take();
    this.#byHandle.set(handle, facts);
    return handle;
  }

  /** No later launch will name a handle of `takeFor`. */
  drop(handle: number): void {
    this.#handles.giveUp(handle);
    this.#givenUp.push(handle);
    if (this.#givenUp.length > KEPT) this.#byHandle.delete(this.#givenUp.shift()!);
  }

  #make(kernel: Kernel): KernelPlan {
    const { info } = this.#channel;
    checkKernel(kernel, info);
    const handle = this.#handles.take();
    const module = kernel.module && this.module(kernel.module);
    const build = (): ReturnType<Channel['build']> => this.#channel.build(handle, kernel.build, module?.number);
    const message: CompileMessage = { device: this.#device, kernel: kernel.name };
    const built = isTraced(compileTrace) ? tracePromise(compileTrace, message, build) : build();
    const plan = new KernelPlan(kernel, handle, this.#channel, built, module);
    // The kernel's launches report the error; without a launch it is not reported.
    built.then(
      (report) => plan.learn(report.limits),
      (error: unknown) => {
        plan.isBuilding = false;
        if (mayPass(error)) this.#giveUp(kernel, plan);
      },
    );
    this.#plans.set(kernel, plan);
    this.#byHandle.set(handle, plan);
    return plan;
  }

  #giveUp(kernel: Kernel, plan: KernelPlan): void {
    plan.isGivenUp = true;
    this.#plans.delete(kernel);
    this.drop(plan.handle);
  }
}

/** Whether the same build may succeed later. */
function mayPass(error: unknown): boolean {
  // K704: the compiler took too long, which may not happen on a less busy machine.
  if (error instanceof CompileError) return error.diagnostics.some(({ code }) => code === 'K704');
  // What the driver refuses as not supported may depend on its state; what the library refuses is settled.
  if (error instanceof UnsupportedError) return error.driverStatus !== undefined;
  return !(error instanceof InternalError || error instanceof DeviceLostError);
}
