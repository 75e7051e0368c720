/** Decides who may run a statement now: there are a few places, one statement of a caller at a time, and a short queue with a deadline. */
import { systemClock } from '../../clock.ts';
import { StatementError } from '../../contract/interface/warehouse-tools.ts';

type TurnOptions = {
  /** Number of statements that may wait. At most half of them are of one caller. */
  readonly waiting: number;
  readonly waitMs: number;
};

export type Turn<P> = {
  readonly place: P;
  /** Gives the place to the next waiting statement. Call it once. */
  end(): void;
};

type Waiter<P> = { readonly caller: string; readonly begin: (turn: Turn<P>) => void };

/** Resolves to a place, in the order of the calls. A caller whose statement is running is skipped until the statement has ended. */
type TakeTurn<P> = (caller: string) => Promise<Turn<P>>;

/** @throws StatementError (429) when too many wait, or the turn does not come in time */
export function createTurns<P>(places: readonly P[], { waiting: most, waitMs }: TurnOptions): TakeTurn<P> {
  const free = [...places];
  const running = new Set<string>();
  let waiting: readonly Waiter<P>[] = [];

  const begin = (caller: string, place: P): Turn<P> => {
    running.add(caller);
    const end = () => {
      running.delete(caller);
      free.push(place);
      const next = waiting.find((one) => !running.has(one.caller));
      if (next === undefined) return;
      waiting = waiting.filter((one) => one !== next);
      next.begin(begin(next.caller, free.pop()!));
    };
    return { place, end };
  };
  const wait = async (caller: string): Promise<Turn<P>> => {
    const done = new AbortController();
    const turn = new Promise<Turn<P>>((resolve) => {
      waiting = [...waiting, { caller, begin: resolve }];
    });
    const waiter = waiting.at(-1)!;
    const late = systemClock.sleep(waitMs, done.signal).then(
      () => null,
      () => null,
    );
    const first = await Promise.race([turn, late]);
    done.abort();
    // The turn may have come at the same moment.
    if (first !== null || !waiting.includes(waiter)) return turn;
    waiting = waiting.filter((one) => one !== waiter);
    throw new StatementError(
      `the statement waited ${waitMs / 1000} s for its turn (each caller runs one at a time); try again`,
      429,
    );
  };

  return async (caller) => {
    if (!running.has(caller) && free.length > 0) return begin(caller, free.pop()!);
    const own = waiting.filter((one) => one.caller === caller).length;
    if (own >= Math.ceil(most / 2)) {
      throw new StatementError('too many of your statements wait; each caller runs one at a time', 429);
    }
    if (waiting.length >= most) throw new StatementError('too many statements at once; try again', 429);
    return wait(caller);
  };
}
