/** The progress bar of a command that reads a known number of items. */
import type { Output } from '../shell/io.ts';

type Bar = { add(count: number): void; stop(): void };

/** Appears only on a terminal; otherwise `count` is not called. `unit`: the counted items, as a plural. */
export async function startBar(err: Output, unit: string, count: () => Promise<number>): Promise<Bar> {
  if (!err.canRedraw) return { add: () => undefined, stop: () => undefined };
  const { SingleBar } = await import('cli-progress');
  const bar = new SingleBar({
    stream: err.stream as NodeJS.WritableStream,
    format: ` {percentage}% [{bar}] {value} of {total} ${unit}, {eta_formatted} to go`,
    gracefulExit: false,
    clearOnComplete: true,
  });
  bar.start(await count(), 0);
  err.setRedrawing(true);
  return {
    add: (count) => bar.increment(count),
    stop: () => {
      bar.stop();
      err.setRedrawing(false);
    },
  };
}
