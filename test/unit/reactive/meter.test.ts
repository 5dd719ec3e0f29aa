import { describe, expect, it } from 'vitest';
import { Meter } from '../../../src/reactive/meter.js';

function started(): { readonly meter: Meter; readonly at: (ms: number) => Meter } {
  let nowMs = 0;
  const meter = new Meter(() => nowMs);
  meter.start();
  const at = (ms: number): Meter => {
    nowMs = ms;
    return meter;
  };
  return { meter, at };
}

describe('a meter', () => {
  it('names the busiest part, and its share of the run', () => {
    const { meter, at } = started();
    meter.set('source', true);
    at(10).set('source', false);
    meter.begin('decode');
    at(30).set('consumer', true);
    at(40).end('decode');
    at(50).set('consumer', false);
    at(55).set('consumer', false);
    at(60).stop();
    at(1000);
    expect(meter.bottleneck()).toEqual({ name: 'decode', busyShare: 0.5 });
    expect(meter.wallMs).toBe(60);
    expect(meter.stages().map(({ name, busyMs }) => [name, busyMs])).toEqual([
      ['source', 10],
      ['lanes', 0],
      ['consumer', 20],
      ['decode', 30],
    ]);
  });

  it('counts work of several lanes at the same time once', () => {
    const { meter, at } = started();
    meter.begin('upload');
    at(10).begin('upload');
    at(20).end('upload');
    at(30).end('upload');
    at(40).begin('upload');
    at(50);
    expect(meter.stages().find(({ name }) => name === 'upload')).toEqual({ name: 'upload', busyMs: 40, busyShare: 0.8 });
  });

  it("answers 'lanes' only if the work that occupies them was not measured", () => {
    const { meter, at } = started();
    meter.set('lanes', true);
    meter.begin('launch blur');
    at(85).end('launch blur');
    at(100);
    expect(meter.bottleneck()).toEqual({ name: 'launch blur', busyShare: 0.85 });
    at(200);
    expect(meter.bottleneck()).toEqual({ name: 'lanes', busyShare: 1 });
  });

  it('reports nothing before its start', () => {
    expect(new Meter(() => 0).bottleneck()).toEqual({ name: 'none', busyShare: 0 });
  });
});
