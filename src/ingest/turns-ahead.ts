/** The requests of a batch of chunks, taken together before the first of them is asked; where the account has limits, each takes its own. */
import { type Ahead, giveBackUnsent, takeAhead } from '../quota/ahead.ts';
import type { Quota, Spender, Stretch } from '../quota/quota.ts';
import { isDatabaseAway } from '../store/database-away.ts';
import type { ChunkJob } from './chunk-job.ts';

/** Called when the batch has ended, however it did: gives back what was not sent. */
export type GiveBack = () => Promise<void>;
/** For chunks that one worker is about to work off one after the other, all of one backfill. */
export type TakeAhead = (jobs: readonly ChunkJob[]) => GiveBack;

export type TurnsAhead = {
  readonly take: TakeAhead;
  /** The one that was taken for this chunk, if that was for the same stretch and nothing has been refused since. Each is had once. */
  of(job: ChunkJob, stretch: Stretch): Ahead | undefined;
  /** Something was refused: what was taken before that may be for more of the same. */
  refused(): void;
};

const NOTHING_TAKEN: GiveBack = async () => undefined;

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
  const taken = new Map<ChunkJob, { readonly ahead: Ahead; readonly stretch: Stretch; readonly refusals: number }>();
  let refusals = 0;
  return {
    take: (jobs) => {
      const [first] = jobs;
      if (first === undefined || !quota.isBoundless()) return NOTHING_TAKEN;
      const asked = jobs.flatMap((job) => {
        const stretch = stretchOf(job);
        return stretch === null ? [] : [{ job, stretch }];
      });
      const stretches = asked.map(({ stretch }) => stretch);
      const spender = spenderOf(first);
      const aheads = takeAhead(quota, spender, stretches);
      for (const [i, { job, stretch }] of asked.entries()) taken.set(job, { ahead: aheads[i]!, stretch, refusals });
      return async () => {
        for (const { job } of asked) taken.delete(job);
        await giveBackUnsent(quota, spender, aheads).catch((error: unknown) => {
          // It stays counted, as what is in hand of a process that is killed does.
          if (!isDatabaseAway(error)) throw error;
        });
      };
    },
    of: (job, { span }) => {
      const mine = taken.get(job);
      taken.delete(job);
      if (mine === undefined || mine.refusals !== refusals) return undefined;
      return mine.stretch.span.from === span.from && mine.stretch.span.to === span.to ? mine.ahead : undefined;
    },
    refused: () => {
      refusals++;
    },
  };
}
