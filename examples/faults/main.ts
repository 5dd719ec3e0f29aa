// Serves requests while a kernel faults every second:
//   node build/js/examples/faults/main.js [faults, 10] [milliseconds between them, 1000]
import { serve } from './serve.js';

const [faults = 10, everyMs = 1000] = process.argv.slice(2).map(Number);
const { answered, wrong, longestMs, openings, repeated, seen } = await serve(faults, everyMs);
console.log(`${answered} requests answered, ${wrong} wrong; the longest took ${Math.round(longestMs)} ms`);
console.log(`${seen.length} faults (${[...new Set(seen)].join(', ')}), ${openings} openings, ${repeated} requests done again`);
process.exitCode = wrong === 0 ? 0 : 1;
