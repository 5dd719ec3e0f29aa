// A compiler that takes one image for all kernels, which is faster than to compile them: they set the first element of their array to 7.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';

/** The path of a script in the folder, which runs `before` and `after` as well. */
export function copyingCompiler(folder: string, before = '', after = ''): string {
  const image = path.join(folder, 'image.so');
  const text = `struct Launch { void* const* params; };
    extern "C" void mr_entry_k(const Launch* launch, unsigned long long, unsigned long long) { **(int**)launch->params[0] = 7; }
    extern "C" const unsigned mr_params_k[] = {1, 8};`;
  execFileSync('g++', ['-shared', '-fPIC', '-x', 'c++', '-o', image, '-'], { input: text });
  const script = path.join(folder, 'copying-cxx');
  const copy = `l=; for a in "$@"; do [ "$l" = -o ] && cp ${image} "$a"; l=$a; done`;
  const lines = ['#!/bin/sh', '[ "$1" = --version ] && echo "g++ (Some) 1.2.3" && exit', before, copy, after, 'exit 0', ''];
  writeFileSync(script, lines.join('\n'), { mode: 0o755 });
  return script;
}
