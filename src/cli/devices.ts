// `millrace devices`.
import { listDevices } from '../index.js';

export async function devices(isJson: boolean, print: (line: string) => void): Promise<number> {
  const found = await listDevices();
  if (isJson) print(JSON.stringify(found, null, 2));
  else for (const { id, name, totalMemoryBytes } of found) print(`${id.padEnd(8)} ${name}, ${(totalMemoryBytes / 2 ** 30).toFixed(1)} GiB`);
  return 0;
}
