// Rules that a test can check: which folder may import or include which, which packages appear where, how long a file
// may be, that no file is dead, and that generated files are up to date. The tables are the rules; change them knowingly.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { CIRCLES, DOORS_OF_ORDERING, LOWERED_EXPRESSIONS, MAY_IMPORT, ORDERING, SUBFOLDERS } from './architecture-tables.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Packages, and where they may be imported. Node's own modules are free, but core and compiler stay away from files and processes. */
const PACKAGES: Readonly<Record<string, (file: string) => boolean>> = {
  // Types alone: the packages are loaded by name.
  '@nats-io/jetstream': (file) => file.startsWith('queue/nats-'),
  '@nats-io/transport-node': (file) => file === 'queue/nats-client.ts',
  bullmq: (file) => file.startsWith('queue/bullmq-'),
  '@viz-js/viz': (file) => file === 'core/graphs/graph-svg.ts',
  acorn: (file) => file.startsWith('compiler/'),
  cac: (file) => file === 'cli/main.ts',
  pbf: (file) => file === 'recording/perfetto-packets.ts',
  piscina: (file) => file === 'workers/pool-thread.ts',
  rxjs: (file) => file.startsWith('reactive/') || file.startsWith('testing/') || file === 'cli/demo.ts',
  'rxjs/testing': (file) => file.startsWith('testing/'),
};
/** May name its types, which cost nothing at run time. */
const TYPES_OF_RXJS = ['core/', 'index.ts', 'open-device.ts'];
const NODE_MODULES_OF_PURE_FOLDERS = [
  'node:async_hooks',
  'node:buffer',
  'node:crypto',
  'node:diagnostics_channel',
  'node:events',
  // For packages that are loaded at their first use.
  'node:module',
  'node:perf_hooks',
  'node:util',
];
/** These look around all the same, for the place of an error in the user's file, and nowhere else. */
const READERS_OF_FILES: readonly string[] = [
  'cuda-cpp/read/regular-files.ts',
  'compiler/definitions/source-files.ts',
  'compiler/diagnostics/source-map.ts',
  'compiler/diagnostics/user-place.ts',
];
const PURE_FOLDERS = ['core/', 'compiler/', 'cuda-cpp/', 'protocol/'];

/** Folder of native/, and what its files may include. */
const MAY_INCLUDE: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  hal: ['protocol'],
  runtime: ['hal', 'protocol'],
  cuda: ['hal', 'protocol'],
  cpu: ['hal', 'protocol'],
  addon: [
    'runtime',
    'hal',
    'protocol',
    'cuda/backend.h',
    'cuda/nvrtc.h',
    'cuda/device_link.h',
    'cuda/communicator.h',
    'cuda/libraries.h',
    'cpu/openblas.h',
    'cuda/nvml.h',
    'cpu/backend.h',
  ],
};

const USUAL_LINES = 400;
const MAX_LINES = 600;
/** What a file with more than the usual number of lines says in its head. */
const REASON = /^\/\/ More than 400 lines: \S/m;

function filesUnder(folder: string, pattern: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => pattern.test(file))
    .toSorted();
}
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const isGenerated = (path: string): boolean => /\.gen\.(h|ts)$/.test(path);

interface Import {
  readonly target: string;
  /** Nothing but types is imported. */
  readonly isType: boolean;
}

/** Imports, re-exports, dynamic imports, and the files named by `new URL('./x.js', import.meta.url)`; a bundle is named x.cjs. */
function importsOf(text: string): Import[] {
  const found: Import[] = [];
  const statement = /^(?:import|export)\s+(type\s+)?([^'";]*?\sfrom\s+)?'([^']+)'/gm;
  for (const [, type, names, target] of text.matchAll(statement)) {
    const list = /^\{([^}]*)\}/
      .exec(names ?? '')?.[1]
      ?.split(',')
      .filter((name) => name.trim() !== '');
    found.push({ target: target!, isType: type !== undefined || list?.every((name) => name.trim().startsWith('type ')) === true });
  }
  for (const [, target] of text.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g)) found.push({ target: target!, isType: false });
  for (const [, target] of text.matchAll(/new URL\(\s*'(\.[^']+)\.c?js',\s*import\.meta\.url\s*\)/g))
    found.push({ target: `${target!}.js`, isType: false });
  return found;
}

const isInside = (path: string, allowed: readonly string[]): boolean =>
  allowed.some((entry) => path === entry || path.startsWith(`${entry}/`));

describe('imports of src/', () => {
  const sources = filesUnder('src', /\.ts$/);
  const graph = new Map(sources.map((file) => [file, importsOf(read(`src/${file}`))]));
  const resolve = (from: string, target: string): string => posix.join(dirname(from), target).replace(/\.js$/, '.ts');

  test('every folder has a row in the table', () => {
    const folders = new Set(sources.map((file) => file.split('/')[0]!));
    expect([...folders].filter((folder) => !(folder in MAY_IMPORT))).toEqual([]);
  });

  test('relative imports end in .js and name a file that exists', () => {
    const wrong: string[] = [];
    for (const [file, imports] of graph) {
      for (const { target } of imports) {
        if (!target.startsWith('.')) continue;
        if (!target.endsWith('.js') || !graph.has(resolve(file, target))) wrong.push(`${file}: ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('arrows go one way', () => {
    const wrong: string[] = [];
    for (const [file, imports] of graph) {
      const folder = file.split('/')[0]!;
      for (const { target } of imports) {
        if (!target.startsWith('.')) continue;
        const path = resolve(file, target);
        if (path.split('/')[0] !== folder && !isInside(path, MAY_IMPORT[folder] ?? [])) wrong.push(`${file} imports ${path}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  describe.each(Object.entries(SUBFOLDERS))('subfolders of %s', (folder, below) => {
    const subfolders = Object.keys(below);
    const inFolder = sources.filter((file) => file.startsWith(`${folder}/`)).map((file) => file.split('/'));

    test('every file is in one of the table', () => {
      expect(inFolder.filter((parts) => parts.length !== 3).map((parts) => parts.join('/'))).toEqual([]);
      expect(new Set(inFolder.map(([, name]) => name))).toEqual(new Set(subfolders));
    });

    test('arrows go down, types included, and each is used', () => {
      const isDown = Object.entries(below).every(([name, others]) =>
        others.every((other) => subfolders.indexOf(other) < subfolders.indexOf(name)),
      );
      expect(isDown).toBe(true);
      const wrong: string[] = [];
      const unused = new Set(Object.entries(below).flatMap(([name, others]) => others.map((other) => `${name} to ${other}`)));
      for (const parts of inFolder) {
        const file = parts.join('/');
        for (const { target } of graph.get(file)!) {
          const [into, other] = resolve(file, target).split('/') as [string, string];
          if (!target.startsWith('.') || into !== folder || other === parts[1]) continue;
          unused.delete(`${parts[1]} to ${other}`);
          if (below[parts[1]!]?.includes(other) !== true) wrong.push(`${file} imports ${resolve(file, target)}`);
        }
      }
      expect(wrong).toEqual([]);
      expect([...unused]).toEqual([]);
    });
  });

  test('circles are the known ones, and one is of values', () => {
    const reachable = (from: string, followsTypes: boolean): Set<string> => {
      const found = new Set<string>();
      const open = [from];
      for (let file = open.pop(); file !== undefined; file = open.pop()) {
        for (const { target, isType } of graph.get(file) ?? []) {
          const path = resolve(file, target);
          if (!target.startsWith('.') || found.has(path) || (isType && !followsTypes)) continue;
          found.add(path);
          open.push(path);
        }
      }
      return found;
    };
    const circles = (followsTypes: boolean): string[][] => {
      const reached = new Map(sources.map((file) => [file, reachable(file, followsTypes)]));
      const circleOf = (file: string): string[] =>
        sources.filter((other) => reached.get(file)!.has(other) && reached.get(other)!.has(file));
      const inCircles = sources.filter((file) => reached.get(file)!.has(file));
      return inCircles.map(circleOf).filter((circle, at) => circle[0] === inCircles[at]);
    };
    expect(circles(true)).toEqual(CIRCLES);
    expect(circles(false)).toEqual([LOWERED_EXPRESSIONS]);
  });

  test('the parts of the access tracker are used through its doors', () => {
    const wrong: string[] = [];
    for (const [file, imports] of graph) {
      if (file.startsWith(`${ORDERING}/`)) continue;
      for (const { target } of imports) {
        if (!target.startsWith('.')) continue;
        const path = resolve(file, target);
        if (!path.startsWith(`${ORDERING}/`) || DOORS_OF_ORDERING[path.slice(ORDERING.length + 1)]?.test(file) === true) continue;
        wrong.push(`${file} imports ${path}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('packages are imported where they belong', () => {
    const wrong: string[] = [];
    for (const [file, imports] of graph) {
      for (const { target, isType } of imports) {
        if (target.startsWith('.')) continue;
        const isPure = PURE_FOLDERS.some((folder) => file.startsWith(folder)) && !READERS_OF_FILES.includes(file);
        const isAllowed = target.startsWith('node:')
          ? !isPure || isType || NODE_MODULES_OF_PURE_FOLDERS.includes(target)
          : (PACKAGES[target]?.(file) ?? false) || (target === 'rxjs' && isType && TYPES_OF_RXJS.some((place) => file.startsWith(place)));
        if (!isAllowed) wrong.push(`${file} imports ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  // Node keeps the failure of an import for the life of the thread: one that fails while no file descriptor is free would fail every later build.
  // In the bundle, the one late import is a `require`, whose failure is not kept.
  const LATE = ['workers/cpu-task.ts', 'workers/host.ts'];
  test('the worker of a device imports nothing late but what its builds need', () => {
    const reached = new Set(sources.filter((file) => /^(toolchain|workers|compiler|cuda-cpp)\//.test(file)));
    for (const file of reached) {
      for (const { target, isType } of graph.get(file)!) if (target.startsWith('.') && !isType) reached.add(resolve(file, target));
    }
    expect([...reached]).toContain('native/load.ts');
    const code = (file: string): string => read(`src/${file}`).replace(/^\s*(?:\/\/|\/?\*).*$/gm, '');
    expect([...reached].filter((file) => /\bimport\s*\(/.test(code(file)))).toEqual(LATE);
    // The bundles hold the packages, too.
    for (const bundle of ['device-worker', 'device-host', 'device-process', 'device-builds']) {
      expect(read(`dist/workers/${bundle}.cjs`).match(/^(?!\s*(?:\/\/|\*)).*\bimport\(.*$/gm)).toBeNull();
    }
  });

  test('opening a device loads none of the compiler of kernels', () => {
    expect(read('dist/workers/device-builds.cjs')).toContain('KernelBuilder');
    const opening = ['worker', 'process', 'host'].map((name) => read(`dist/workers/device-${name}.cjs`)).join('');
    expect(opening).not.toContain('KernelBuilder');
    expect(opening.length).toBeLessThan(100_000);
  });

  // Fake timers of a program's tests replace the global ones.
  test('timers and clocks are those that stood at the import', () => {
    const GLOBAL = /(?<![\w.$'])(?:(?:set|clear)(?:Timeout|Interval|Immediate)|queueMicrotask|performance|Date)\b(?!\s*:|')/g;
    const wrong = sources.flatMap((file) => {
      const text = read(`src/${file}`);
      const timers = /import \{([^}]*)\} from '[^']*\/timers\.js'/.exec(text)?.[1] ?? '';
      const code = text.replace(/^import [^;]*;/gm, '').replace(/\/\*.*?\*\/|(?<!:)\/\/.*|`[^`]*`|'[^'\n]*'/gs, '');
      const used = new Set([...code.matchAll(GLOBAL)].map(([name]) => name));
      return [...used].filter((name) => !timers.split(/[\s,]+/).includes(name)).map((name) => `${file}: ${name}`);
    });
    expect(wrong.filter((use) => !use.startsWith('core/base/timers.ts:'))).toEqual([]);
  });

  test('no file is dead', () => {
    const reached = new Set<string>();
    const visit = (file: string): void => {
      if (reached.has(file)) return;
      reached.add(file);
      for (const { target } of graph.get(file) ?? []) if (target.startsWith('.')) visit(resolve(file, target));
    };
    for (const entry of [
      'index.ts',
      'collectives/index.ts',
      'ops/index.ts',
      'queue/index.ts',
      'recording/index.ts',
      'testing/index.ts',
      'cli/main.ts',
    ])
      visit(entry);
    expect(sources.filter((file) => !reached.has(file))).toEqual([]);
  });
});

describe('includes of native/', () => {
  /** The only file of the shim that the CPU device includes too. */
  const LAUNCH_ABI = 'cpu/shim/launch_abi.h';
  // Kernels include the shim and the kernel headers.
  const sources = filesUnder('native', /\.(h|cpp|def)$/).filter(
    (file) => (!file.startsWith('cpu/shim/') && !file.startsWith('kernel_headers/')) || file === LAUNCH_ABI,
  );
  const includes = new Map(
    sources.map((file) => {
      const found = [...read(`native/${file}`).matchAll(/^\s*#\s*include\s+["<]([^">]+)[">]/gm)];
      return [file, found.map((match) => match[1]!)];
    }),
  );

  test('arrows go one way', () => {
    const wrong: string[] = [];
    for (const [file, targets] of includes) {
      const folder = file.split('/')[0]!;
      for (const target of targets) {
        if (!includes.has(target)) continue;
        if (target.split('/')[0] !== folder && !isInside(target, MAY_INCLUDE[folder] ?? [])) wrong.push(`${file} includes ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('paths are given from native/', () => {
    const wrong: string[] = [];
    for (const file of sources) {
      for (const [, target] of read(`native/${file}`).matchAll(/^\s*#\s*include\s+"([^"]+)"/gm)) {
        if (!includes.has(target!)) wrong.push(`${file}: "${target}"`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('the layouts that images and the CPU device share stand in a file that includes nothing', () => {
    expect(includes.get(LAUNCH_ABI)).toEqual([]);
    const layouts = [...read(`native/${LAUNCH_ABI}`).matchAll(/^struct (Mr\w+) \{/gm)].map((match) => match[1]!);
    expect(layouts).toContain('MrLaunch');
    const again = ['native', 'test/native', 'test/unit']
      .flatMap((folder) => filesUnder(folder, /\.(h|cpp|cu)$/).map((file) => `${folder}/${file}`))
      .filter((file) => file !== `native/${LAUNCH_ABI}` && layouts.some((name) => new RegExp(`struct ${name}\\s*\\{`).test(read(file))));
    expect(again).toEqual([]);
  });

  test('only the addon knows Node', () => {
    const headers = /^(napi|node_api|js_native_api|node|uv|v8)\b.*\.h$/;
    const wrong = [...includes].filter(([file, targets]) => !file.startsWith('addon/') && targets.some((target) => headers.test(target)));
    expect(wrong.map(([file]) => file)).toEqual([]);
  });

  test('only one file of the addon knows the backends', () => {
    const knowing = [...includes].filter(([, targets]) => targets.includes('cuda/backend.h') || targets.includes('cpu/backend.h'));
    const outside = knowing.map(([file]) => file).filter((file) => !/^(cuda|cpu)\//.test(file));
    expect(outside).toHaveLength(1);
    expect(outside[0]).toMatch(/^addon\//);
  });

  test('nothing includes the CUDA toolkit', () => {
    const wrong = [...includes].filter(([, targets]) => targets.some((target) => /^(cuda|cuda_runtime.*|nvrtc)\.h$/.test(target)));
    expect(wrong.map(([file]) => file)).toEqual([]);
  });

  test('CMakeLists.txt lists every source, and no header is dead', () => {
    const listed = [...read('CMakeLists.txt').matchAll(/^\s+native\/(\S+?\.cpp)\)?$/gm)].map((match) => match[1]!);
    expect(listed.toSorted()).toEqual(sources.filter((file) => file.endsWith('.cpp')));
    const included = new Set([...includes.values()].flat());
    expect(sources.filter((file) => !file.endsWith('.cpp') && !included.has(file))).toEqual([]);
  });

  test('test/native/CMakeLists.txt lists every native test', () => {
    const listed = [...read('test/native/CMakeLists.txt').matchAll(/^\s*(?:millrace_(?:native|explored)_test\()?(\w+_test)\)?$/gm)].map(
      (match) => `${match[1]}.cpp`,
    );
    expect(listed.toSorted()).toEqual(
      readdirSync(join(root, 'test/native'))
        .filter((file) => file.endsWith('_test.cpp'))
        .toSorted(),
    );
  });
});

describe('every file', () => {
  const paths = ['src', 'native', 'test', 'scripts', 'examples', 'bench'].flatMap((folder) =>
    filesUnder(folder, /\.(ts|mjs|h|cpp|def|cu)$/).map((file) => `${folder}/${file}`),
  );

  test('is short, or says why not', () => {
    const isLong = (path: string): boolean => {
      const lines = read(path).split('\n');
      const most = REASON.test(lines.slice(0, 20).join('\n')) ? MAX_LINES : USUAL_LINES;
      return lines.length - 1 > most;
    };
    expect(paths.filter((path) => !isGenerated(path) && isLong(path))).toEqual([]);
  });

  test('has no note without a reference', () => {
    const note = /\b(TODO|FIXME|XXX)\b(?!\(#\d+\))/;
    expect(paths.filter((path) => path !== 'test/unit/architecture.test.ts' && note.test(read(path)))).toEqual([]);
  });

  test('is formatted as a text file', () => {
    expect(paths.filter((path) => !isGenerated(path) && (!/[^\n]\n$/.test(read(path)) || /\r|\t/.test(read(path))))).toEqual([]);
  });
});

test.each(['gen-protocol.mjs', 'gen-ranges.mjs'])('what %s wrote is up to date', (script) => {
  const run = (): string => execFileSync(process.execPath, [join(root, 'scripts', script), '--check'], { encoding: 'utf8' });
  expect(run).not.toThrow();
});
