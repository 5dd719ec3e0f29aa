// A module on one device: its number, its build, and the variables that launches of its kernels use.
import type { Encoder } from '../../protocol/encoder.js';
import type { ModuleReport } from '../channel/channel.js';
import type { ModuleText } from './module.js';

/** The variables of a module that records use. */
export interface VariableUses {
  /** Adds them to the launch that is being encoded, after `at` entries. Returns the new number of entries. */
  use(encoder: Encoder, at: number): number;
}

export class ModulePlan<V extends VariableUses = VariableUses> {
  readonly text: ModuleText;
  /** The module's number on the device. */
  readonly number: number;
  readonly loaded: Promise<ModuleReport>;
  /** Made on first use. */
  variables: V | undefined = undefined;

  constructor(text: ModuleText, number: number, loaded: Promise<ModuleReport>) {
    this.text = text;
    this.number = number;
    this.loaded = loaded;
  }
}
