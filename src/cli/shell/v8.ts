/** Tunes the garbage collector and the compiler of V8 for backfills; the values were measured. */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** Both halves of the young generation together. */
const YOUNG_BYTES = 16 * 1024 * 1024;
/** Times its first size, which is 2 MB from Node.js 20 to 24. */
const GROWTH = 8;
/**
 * How much a function must have done, in bytes of bytecode, before it may be optimised: twice what Node.js 20 has. With its own, a
 * backfill of a few seconds spends a tenth of its processor time on making code fast that it hardly runs any more; with nine times as
 * much, what that saves is lost again to slow code.
 */
const INTERRUPT_BUDGET = 132 * 1024;
/** Arrays of 2 KB that live: six times what any of them needs to grow. */
const MOST_PROBES = 3_000;

/** Before the program is loaded: what loading leaves behind makes the young generation grow, too. */
export function tuneV8(): void {
  growYoung();
  // What lives long is little (50 MB with 50,000 coins). Left to itself the heap grows to three times that before it is looked through
  // (260 MB resident); at 30 % it is looked through so often that a backfill needs a tenth more processor time for 20 MB less.
  setFlagsFromString('--heap-growing-percent=60');
  // Little of what is young survives: helpers hardly save work, and where the database wants the same processors everything stands still
  // until the last of them has had its turn (measured with two processors: a twentieth of a backfill's time).
  setFlagsFromString('--no-parallel-scavenge');
  setFlagsFromString(`--interrupt-budget=${INTERRUPT_BUDGET}`);
}

/**
 * At its first size the young generation is looked through at every request, and a backfill takes a fifth longer; as large as Node.js
 * 24 lets it grow, the process has 330 MB. There is no flag for its size that is heeded once the engine runs, only one for how much
 * it grows when much has survived: so it is let grow once.
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
