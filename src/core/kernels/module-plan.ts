// What a module is on one device: its number, its build, and what the launches of its kernels use by it.
import type { ModuleReport } from '../channel/channel.js';
import type { ModuleText } from './module.js';

export class ModulePlan {
  readonly text: ModuleText;
  /** The module's number on the device. */
  readonly number: number;
  readonly loaded: Promise<ModuleReport>;
  /** Its variables on the device, from the first launch or `global` on: see memory/module-variables.ts. */
  variables: object | undefined = undefined;

  constructor(text: ModuleText, number: number, loaded: Promise<ModuleReport>) {
    this.text = text;
    this.number = number;
    this.loaded = loaded;
  }
}
