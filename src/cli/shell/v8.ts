/** Tunes the garbage collector of V8 for backfills. All values were measured. V8 writes an error about a flag that it does not know. */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** The size of both halves of the young generation together. */
const YOUNG_BYTES = 16 * 1024 * 1024;
/** A multiple of its first size, which is 2 MB from Node.js 20 to 24. */
const GROWTH = 8;
/** Number of 2 KB arrays that are kept alive: six times what any version of Node needs. */
const MOST_PROBES = 3_000;

/** Call it before the program is loaded: what loading leaves behind makes the young generation grow, too. `command`: the command that will run. */
export function tuneV8(command: string | undefined): void {
  growYoung();
  // Few objects live long (50 MB with 50,000 coins). By default the heap grows to three times that before V8 collects it (260 MB resident).
  // With 30 %, V8 collects so often that a backfill without limits needs a tenth more processor time, and saves only 20 MB. A service runs
  // at the rate of its plan for months, so it should stay small.
  setFlagsFromString(`--heap-growing-percent=${command === 'service' ? 30 : 60}`);
  // Few young objects survive, so helper threads save hardly any work. When the database needs the same processors, the program stands
  // still until the last helper has run (measured with two processors: a twentieth of the time of a backfill).
  setFlagsFromString('--no-parallel-scavenge');
}

/**
 * Grows the young generation once. At its first size, V8 collects it at every request, and a backfill takes a fifth longer. At the
 * size that Node.js 24 lets it reach, the process has 330 MB. V8 ignores the flag for the size once it runs; it obeys only the flag
 * for how much the young generation grows when many objects have survived.
 */
function growYoung(): void {
  setFlagsFromString(`--semi-space-growth-factor=${GROWTH}`);
  const alive: number[][] = [];
  while (youngBytes() < YOUNG_BYTES && alive.length < MOST_PROBES)
    alive.push(new Array<number>(256).fill(alive.length));
  setFlagsFromString('--semi-space-growth-factor=1');
}

function youngBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;
}
