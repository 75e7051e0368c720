/** Remembers which intervals of the upstream differ, so that nobody asks a second time about each series of such an upstream. */
import type { ClaimAnswer } from '../../core/second-opinion.ts';
import { intervalPair, type Sample } from '../../store/candle/other-intervals.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { dropClaim, findClaim, recordAnswer } from '../../store/work/second-opinion.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';
import type { Implausible } from './implausible-candles.ts';

/** What the comparison of an answer that is stored now came to. */
export type Compared = { readonly found: Implausible | null; readonly samples: readonly Sample[] };

/** A difference that a second answer confirmed counts once for each coin; an answer that agrees takes all of them back. */
export async function recordDifference(
  sql: Sql,
  { interval, coinId }: Pick<ChunkJob, 'interval' | 'coinId'>,
  { found, samples }: Compared,
  heard: Omit<ClaimAnswer, 'says'>,
): Promise<void> {
  const [sample] = samples;
  if (sample === undefined) return;
  const id = { claim: 'intervals differ', key: intervalPair(interval, sample.interval) } as const;
  if (found === null) return sample.hasDiffered ? dropClaim(sql, id) : undefined;
  if (found.kind !== 'other interval' || coinsOf(await findClaim(sql, id)).includes(coinId)) return;
  await sql.begin((tx) =>
    recordAnswer(tx, id, heard, (before) => ({
      says: 'agrees',
      evidence: { coins: [...coinsOf(before), coinId].join(' ') },
    })),
  );
}

type DifferingCoins = { readonly evidence: { readonly [name: string]: unknown } | null } | null;

function coinsOf(claim: DifferingCoins): readonly string[] {
  const coins = claim?.evidence?.coins;
  return typeof coins === 'string' ? coins.split(' ') : [];
}
