// The interface between the builder and the compilers of both devices.
import type { BuildSpec } from '../../core/channel/build.js';

export interface KernelCompiler {
  /** Shown to users: 'g++ 12.2.0'. */
  readonly label: string;
  /** Everything about the compiler that can change its output: path, version, fixed flags. */
  readonly identity: string;
  /** Whether the compiler's own command line names folders of headers: `CXX='g++ -Iheaders'`. */
  readonly hasFolders: boolean;
  /** Throws a CompileError. */
  compile(spec: BuildSpec): Promise<Uint8Array>;
  /**
   * Checks the parameters of kernels of one module, without making an image. Throws a CompileError for the first one that differs; one that
   * this compiler cannot build is an UnavailableError.
   */
  check(kernels: readonly BuildSpec[]): Promise<void>;
}
