import { describe, expect, it } from 'vitest';
import { Meter } from '../../../src/reactive/meter.js';

function clock(): { ms: number; now: () => number } {
  const time = { ms: 0, now: () => time.ms };
  return time;
}

describe('a meter', () => {
  it('names what was busy longest, and for how much of the run', () => {
    const time = clock();
    const meter = new Meter(time.now);
    meter.start();
    meter.set('source', true);
    time.ms = 10;
    meter.set('source', false);
    meter.set('stage', true);
    time.ms = 20;
    meter.set('stage', true);
    time.ms = 40;
    meter.set('stage', false);
    meter.set('consumer', true);
    time.ms = 50;
    meter.set('consumer', false);
    meter.set('consumer', false);
    time.ms = 60;
    meter.stop();
    time.ms = 1000;
    expect(meter.summary()).toEqual({ bottleneck: 'stage', share: 0.5 });
  });

  it('counts what is still busy', () => {
    const time = clock();
    const meter = new Meter(time.now);
    meter.start();
    time.ms = 10;
    meter.set('source', true);
    time.ms = 40;
    expect(meter.summary()).toEqual({ bottleneck: 'source', share: 0.75 });
  });

  it('has nothing to say before its start', () => {
    expect(new Meter().summary()).toEqual({ bottleneck: 'none', share: 0 });
  });
});
