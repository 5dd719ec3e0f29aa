// The kernels and modules of one device: each is built once, at its first launch there or by `device.compile`.
// Thread: owner.
import { buildsChannel } from '../base/trace.js';
import type { Channel } from '../channel/channel.js';
import { checkKernel, KernelPlan } from './kernel-plan.js';
import type { Kernel } from './kernel.js';
import { ModulePlan } from './module-plan.js';
import type { ModuleText } from './module.js';

export class PlanBook {
  readonly #device: string;
  readonly #channel: Channel;
  readonly #takeHandle: () => number;
  readonly #plans: WeakMap<Kernel, KernelPlan> = new WeakMap();
  readonly #byHandle: Map<number, KernelPlan> = new Map();
  readonly #modules: WeakMap<ModuleText, ModulePlan> = new WeakMap();
  #lastModule = 0;

  constructor(device: string, channel: Channel, takeHandle: () => number) {
    this.#device = device;
    this.#channel = channel;
    this.#takeHandle = takeHandle;
  }

  /** Throws ArgumentError for what is no kernel, and for one with more arguments than a launch can have. */
  of(kernel: Kernel): KernelPlan {
    return this.#plans.get(kernel) ?? this.#make(kernel);
  }

  /** Its image is built and loaded from now on. */
  module(text: ModuleText): ModulePlan {
    let plan = this.#modules.get(text);
    if (plan === undefined) {
      const number = ++this.#lastModule;
      plan = new ModulePlan(text, number, this.#channel.loadModule(number, text.build));
      this.#modules.set(text, plan);
      // Its kernels and variables tell.
      plan.loaded.catch(() => undefined);
    }
    return plan;
  }

  /** What a record names by this handle. */
  byHandle(handle: number): KernelPlan | undefined {
    return this.#byHandle.get(handle);
  }

  #make(kernel: Kernel): KernelPlan {
    checkKernel(kernel);
    const handle = this.#takeHandle();
    const { info } = this.#channel;
    const module = kernel.module && this.module(kernel.module);
    const built = this.#channel.build(handle, kernel.build, module?.number);
    const plan = new KernelPlan(kernel, handle, info, built, module);
    // Its launches tell; a build that nobody asks about does not.
    built.then(
      (report) => {
        plan.learn(report.limits);
        if (buildsChannel.hasSubscribers) buildsChannel.publish({ device: this.#device, kernel: kernel.name, ...report });
      },
      () => undefined,
    );
    this.#plans.set(kernel, plan);
    this.#byHandle.set(handle, plan);
    return plan;
  }
}
