/** The turns of a batch of chunks, taken together before the first of them is asked; where the account has limits, each takes its own. */
import { type Ahead, giveBackUnsent, takeAhead } from '../quota/ahead.ts';
import type { Quota, Spender, Stretch } from '../quota/quota.ts';
import { isDatabaseAway } from '../store/connection/database-unavailable.ts';
import { type ChunkJob, chunkJobId } from './queue/chunk-job.ts';

/** Called when the batch has ended, however it did: gives back what was not sent. */
export type GiveBack = () => Promise<void>;
/** For chunks of one backfill that one worker is about to work off one after the other. */
export type TakeTurns = (jobs: readonly ChunkJob[]) => GiveBack;

export type TurnsAhead = {
  readonly take: TakeTurns;
  /** The one that was taken for this chunk, if it was for this stretch and is still worth what it was. */
  of(job: ChunkJob, stretch: Stretch): Ahead | undefined;
  /** A chunk has ended. Whoever else has one for it, taken before, must look again. */
  ended(job: ChunkJob): void;
  /** Something did not end well: what was taken before that may be for more of the same, or all may have to wait. */
  distrust(): void;
};

export function createTurnsAhead({
  quota,
  spenderOf,
  stretchOf,
}: {
  readonly quota: Quota;
  readonly spenderOf: (job: ChunkJob) => Spender;
  /** Null: nothing of it can be asked for. */
  readonly stretchOf: (job: ChunkJob) => Stretch | null;
}): TurnsAhead {
  const taken = new Map<ChunkJob, { readonly id: string; readonly ahead: Ahead; readonly span: Stretch['span'] }>();
  return {
    take: (jobs) => {
      const wanted = jobs.flatMap((job) => {
        const stretch = stretchOf(job);
        return stretch === null ? [] : [{ job, stretch }];
      });
      const [first] = wanted;
      if (first === undefined) return async () => undefined;
      const spender = spenderOf(first.job);
      const stretches = wanted.map(({ stretch }) => stretch);
      const aheads = takeAhead(quota, spender, stretches);
      for (const [i, { job, stretch }] of wanted.entries())
        taken.set(job, { id: chunkJobId(job), ahead: aheads[i]!, span: stretch.span });
      return async () => {
        for (const { job } of wanted) taken.delete(job);
        await giveBackUnsent(quota, spender, aheads).catch((error: unknown) => {
          // They stay counted, as what a process has in hand that is killed.
          if (!isDatabaseAway(error)) throw error;
        });
      };
    },
    of: (job, { span }) => {
      const mine = taken.get(job);
      return mine !== undefined && mine.span.from === span.from && mine.span.to === span.to ? mine.ahead : undefined;
    },
    ended: (job) => {
      const id = chunkJobId(job);
      for (const [other, its] of taken) if (its.id === id) taken.delete(other);
    },
    distrust: () => taken.clear(),
  };
}
