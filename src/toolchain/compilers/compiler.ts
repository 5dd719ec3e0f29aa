// The interface between the builder and the compilers of both devices.
import type { UnavailableError } from '../../core/base/errors.js';
import type { BuildSpec } from '../../core/channel/build-spec.js';

export interface KernelCompiler {
  /** Shown to users: 'g++ 12.2.0'. */
  readonly label: string;
  /** Everything about the compiler that can change its output: path, version, fixed flags. */
  readonly identity: string;
  /** Whether the compiler's own command line names folders of headers: `CXX='g++ -Iheaders'`. */
  readonly hasFolders: boolean;
  /** Throws a CompileError. */
  compile(spec: BuildSpec): Promise<Uint8Array>;
  /** Why this compiler cannot build a kernel that others can; undefined if it can. Absent if it builds every kernel. */
  refusal?(kernel: BuildSpec): UnavailableError | undefined;
  /** Checks the parameters of kernels of one module, none of which it refuses, without making an image. Throws a CompileError for the first one that differs. */
  check(kernels: readonly BuildSpec[]): Promise<void>;
}
