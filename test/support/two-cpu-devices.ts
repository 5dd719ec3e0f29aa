// Imported before the library: the number of CPU devices is read when the addon first enumerates.
export const CPU_DEVICES = 2;
process.env['MILLRACE_CPU_DEVICES'] = String(CPU_DEVICES);
