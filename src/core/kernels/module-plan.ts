// What a module is on one device: its number, its build, and what the launches of its kernels use by it.
import type { Encoder } from '../../protocol/encoder.js';
import type { ModuleReport } from '../channel/channel.js';
import type { ModuleText } from './module.js';

/** The variables of a module that records use. */
export interface VariableUses {
  /** Adds them to the launch that is being written, behind `at` entries; how many there are then. */
  use(encoder: Encoder, at: number): number;
}

export class ModulePlan<V extends VariableUses = VariableUses> {
  readonly text: ModuleText;
  /** Names it to the device. */
  readonly number: number;
  readonly loaded: Promise<ModuleReport>;
  /** Made by whoever first needs it. */
  variables: V | undefined = undefined;

  constructor(text: ModuleText, number: number, loaded: Promise<ModuleReport>) {
    this.text = text;
    this.number = number;
    this.loaded = loaded;
  }
}
