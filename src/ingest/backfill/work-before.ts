/** How many requests are sent before each backfill is done, when several share the workers and the rate. */

export type QueuedWork = {
  readonly id: number;
  readonly priority: number;
  /** True: a service runs it, as one of at most `workers`. False: a command runs it in its own process. */
  readonly isDetached: boolean;
  /** Requests that are left. */
  readonly left: number;
};

export type Work = {
  /** Requests until the backfill is done, its own included. */
  readonly total: number;
  /** The requests of other backfills among them, by backfill id; only the largest numbers. */
  readonly others: ReadonlyMap<number, number>;
};

const MOST_OTHERS = 20;

/**
 * Each service runs one backfill at a time. Of the running backfills, those with the highest priority take turns; the others get nothing until those
 * are done. `sharers`: in the order in which they begin. `block`: a turn has about this many requests.
 */
export function workUntilDone(sharers: readonly QueuedWork[], workers: number, block = 0): ReadonlyMap<number, Work> {
  const works = new Map<number, Work>();
  const lefts = new Map(sharers.map(({ id, left }) => [id, left]));
  const remaining = new Map(lefts);
  let open = sharers;
  let total = 0;
  while (open.length > 0) {
    const commands = open.filter(({ isDetached }) => !isDetached);
    const running = [...open.filter(({ isDetached }) => isDetached).slice(0, workers), ...commands];
    const top = Math.max(...running.map(({ priority }) => priority));
    const takingTurns = running.filter(({ priority }) => priority === top);
    const each = Math.min(...takingTurns.map(({ id }) => remaining.get(id)!));
    for (const { id } of takingTurns) remaining.set(id, remaining.get(id)! - each);
    total += each * takingTurns.length;
    const done = new Set(takingTurns.filter(({ id }) => remaining.get(id)! <= 0).map(({ id }) => id));
    // The last chunks of a backfill that is done may stand behind a block of each backfill that continues: on average behind half of it.
    const behind = (id: number) =>
      takingTurns.reduce((sum, other) => sum + (done.has(other.id) ? 0 : behindOf(other.id, id)), 0);
    const behindOf = (other: number, id: number) =>
      Math.max(0, Math.min(remaining.get(other)!, block / 2 - lefts.get(id)!));
    for (const id of done) works.set(id, { total: total + behind(id), others: othersOf(id, sharers, remaining) });
    open = open.filter(({ id }) => !done.has(id));
  }
  return works;
}

function othersOf(mine: number, sharers: readonly QueuedWork[], remaining: ReadonlyMap<number, number>) {
  const sent = sharers
    .map(({ id, left }) => [id, left - remaining.get(id)!] as const)
    .filter(([id, requests]) => id !== mine && requests > 0);
  return new Map(sent.sort(([, a], [, b]) => b - a).slice(0, MOST_OTHERS));
}
