// `millrace/ops`: operations on arrays, which programs that do not import it do not load.
export * from './arithmetic.js';
export { elementwise } from './elementwise.js';
export * from './reductions.js';
export { astype, clip, where } from './selection.js';
