// What the builder asks of a compiler, whichever device it builds for.
import type { BuildSpec } from '../../core/channel/build.js';

export interface KernelCompiler {
  /** For people: 'g++ 12.2.0'. */
  readonly label: string;
  /** Everything about the compiler that can change its output: path, version, fixed flags. */
  readonly identity: string;
  /** It is told folders of headers by whoever named it: `CXX='g++ -Iheaders'`. */
  readonly hasFolders: boolean;
  /** Throws a CompileError. */
  compile(spec: BuildSpec): Promise<Uint8Array>;
}
