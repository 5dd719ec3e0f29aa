// Before each test file: the process says that it runs on macOS, where Millrace has no addon.
import { listDevices } from 'millrace';
import { beforeAll, expect } from 'vitest';

Object.defineProperty(process, 'platform', { value: 'darwin' });
Object.defineProperty(process, 'arch', { value: 'arm64' });

beforeAll(async () => {
  await expect(listDevices()).rejects.toThrow(/^MILLRACE_ADDON names \/none\/millrace\.node, which does not exist\.\n/);
});
