/** A progress bar of a command that reads a known number of things. */
import type { Output } from '../shell/io.ts';

export type Bar = { add(count: number): void; stop(): void };

/** Shown on a terminal only; else `count` is not called. `unit`: what is counted, as a plural. */
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
