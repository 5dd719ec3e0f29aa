// Which casts of a source become mr_cast of the shim, and which text stays.
import { expect, test } from 'vitest';
import { applyEdits } from '../../../src/cuda-cpp/read/source-edits.js';
import { castEdits } from '../../../src/cuda-cpp/lower/saturating-casts.js';
import { tokenize } from '../../../src/cuda-cpp/read/tokens.js';

function cast(source: string): string {
  const { tokens } = tokenize(source);
  return applyEdits(source, tokens, castEdits(tokens)).text.replaceAll(' ::mr_cast', 'mr_cast');
}

const HEAD = 'typedef unsigned char uchar; using Count = long long; using Scan = cub::BlockScan<int>; template <typename T> void f() { ';

test.each([
  ['y = (int)x;', 'y = mr_cast<int>(x);'],
  ['y = (int)x * 2 + (unsigned char)-a[i].b->c(d, 1)[2];', 'y = mr_cast<int>(x) * 2 + mr_cast<unsigned char>(-a[i].b->c(d, 1)[2]);'],
  ['y = -(int)x - (int)(a + b);', 'y = -mr_cast<int>(x) - mr_cast<int>((a + b));'],
  ['y = (float)(int)x;', 'y = (float)mr_cast<int>(x);'],
  ['y = (int)(float)x + (int)floorf(v) - (int)*p++;', 'y = mr_cast<int>((float)x) + mr_cast<int>(floorf(v)) - mr_cast<int>(*p++);'],
  ['y = (int)(unsigned)v >> 2;', 'y = mr_cast<int>(mr_cast<unsigned>(v)) >> 2;'],
  ['y = (T)v + (uchar)v + (Count)v;', 'y = mr_cast<T>(v) + mr_cast<uchar>(v) + mr_cast<Count>(v);'],
  ['y = a < (int)v || b > (std::size_t)w;', 'y = a < mr_cast<int>(v) || b > mr_cast<std::size_t>(w);'],
  ['y = int(v) + uchar(v * 2) + a[unsigned(v)];', 'y = mr_cast<int>(v) + mr_cast<uchar>(v * 2) + a[mr_cast<unsigned>(v)];'],
  ['y = static_cast<unsigned long>(v);', 'y = mr_cast<unsigned long>(v);'],
  ['return (int)std::min<float>(v, 3.f);', 'return mr_cast<int>(std::min<float>(v, 3.f));'],
])('%s', (text, expected) => {
  expect(cast(HEAD + text)).toBe(HEAD + expected);
});

test.each([
  'y = (float)x; q = (int*)p; z = (T*)0; w = static_cast<const T&>(v); u = (Foo)v;',
  'void g(int), h(unsigned, int x); int (*k)(int) = &g; k = (int (*)(int))p;',
  'size_t n = sizeof(int) + sizeof (long); Scan(temp).sum(v); Scan scan(temp);',
  'y = (int)0; y = int(); y = (T)0; std::function<int(float)> f; auto l = [](int) { return 1; };',
  'int (*pairs)[2]; int operator()(int) const; auto r = (*q)(int) -> int;',
])('stays: %s', (text) => {
  expect(cast(HEAD + text)).toBe(HEAD + text);
});
