// The progress bar, on stderr and only when that is a terminal.
import cliProgress from 'cli-progress';

export interface Progress {
  step(name: string): void;
  stop(): void;
}

export function startProgress(total: number): Progress {
  const bar = new cliProgress.SingleBar(
    {
      format: '{bar} {value}/{total} photos  {duration_formatted}  {name}',
      stream: process.stderr,
      hideCursor: true,
      clearOnComplete: true,
      stopOnComplete: true,
    },
    cliProgress.Presets.shades_classic,
  );
  bar.start(total, 0, { name: '' });
  return {
    step: (name) => {
      bar.increment(1, { name });
    },
    stop: () => {
      bar.stop();
    },
  };
}
