// Several kernels of one CUDA C++ source, and its variables as arrays.
// Thread: the one that made it.
import { describeAs } from '../base/describe.js';
import { type DType, type DTypeLike, DTYPES } from '../elements/dtype.js';
import { checkDType } from '../elements/dtype-names.js';
import { checkShape, lengthOf, type Shape } from '../elements/shape.js';
import type { CudaParams, Kernel } from '../kernels/kernel.js';
import { MODULE, type ModuleSource } from '../kernels/module.js';
import { Lease } from '../memory/lease.js';
import { variablesOf } from '../memory/module-variables.js';
import { DeviceArray } from './array.js';
import { checkOpenDevice, type DeviceLike } from './open-devices.js';

/**
 * CUDA C++ source with several kernels, which share its `__device__` and `__constant__` variables on each device: `CUmodule`,
 * `cupy.RawModule`. A module belongs to no device. It is built for each device at the first launch, `global` or `device.compile` on it. Two
 * modules of the same source share nothing.
 */
export class CudaModule {
  /** The CUDA C++ source, as it was passed to `cudaModule`. */
  readonly source: string;
  /** @internal */
  readonly [MODULE]: ModuleSource;

  /** @internal Made by cudaModule. */
  constructor(source: ModuleSource) {
    this.source = source.build.original ?? source.build.source;
    this[MODULE] = source;
  }

  /**
   * A kernel of the source by its name: `cuModuleGetFunction`, `RawModule.get_function`. The name of an instance of a template has its
   * arguments (`'reduce<float, 256>'`); the module is built with the instances that were asked for before its first launch, `compile` or
   * `global` on any device. Throws as `cudaKernel` does, and ArgumentError for an instance that the module was built without.
   */
  kernel<const P extends CudaParams>(name: string, params: P): Kernel<P> {
    return this[MODULE].kernel(name, params);
  }

  /**
   * A variable of the source on one device, as an array over its memory: `cuModuleGetGlobal`, `RawModule.get_global`. The variable has its
   * initial value whenever a device is opened, and lives until the device closes; disposing the array does not free it. `name` includes
   * namespaces (`physics::gravity`). Structs and pointers take any dtype and shape of their size.
   *
   * Tracked and checked streams count every launch of the module's kernels, earlier ones included, as a use of every variable that `global`
   * was called for: a read of a `__constant__` one, a write of any other. Throws ArgumentError for a name, dtype or size that differs from
   * the source, and for a const variable. A variable that only the preprocessor shows is checked in the compiled image. If it differs
   * there, or the source does not compile, operations on the array reject with an UpstreamError, whose `cause` is a CompileError.
   */
  global<D extends DType>(on: DeviceLike, name: string, dtype: DTypeLike<D>, shape: Shape): DeviceArray<D> {
    const device = checkOpenDevice('device', on);
    const { core } = device;
    const type = checkDType<D>(dtype);
    const dimensions = checkShape(shape);
    const source = this[MODULE];
    const variable = source.variable(name, type, dimensions);
    const storage = variablesOf(core, core.kernelRegistry.module(source)).of(variable, lengthOf(dimensions) * DTYPES[type].byteSize);
    const array = new DeviceArray(device, type, dimensions, storage, 0, Lease.ofDevice(storage, core));
    storage.belongTo(array);
    return array;
  }
}

describeAs(
  CudaModule.prototype,
  (module) => `CudaModule of kernels ${module[MODULE].kernelNames.join(', ')}`,
  (module) => ({ kernels: module[MODULE].kernelNames, globals: module[MODULE].variableNames }),
);
