// A module on one device: its number, its build, and what every launch of its kernels uses because of it (the module's variables).
import type { ModuleReport } from '../channel/channel.js';
import type { ModuleSource } from './module.js';

export class ModulePlan {
  readonly source: ModuleSource;
  /** The module's number on the device. */
  readonly number: number;
  readonly loaded: Promise<ModuleReport>;
  /** Its variables on the device, from the first launch or `global` on: see memory/module-variables.ts. */
  variables: object | undefined = undefined;

  constructor(source: ModuleSource, number: number, loaded: Promise<ModuleReport>) {
    this.source = source;
    this.number = number;
    this.loaded = loaded;
  }
}
