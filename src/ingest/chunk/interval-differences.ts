/** Stores which intervals of the upstream differ, so that Chandler does not need a second opinion about each series of such an upstream. */
import { DAY } from '../../core/interval.ts';
import type { ClaimAnswer } from '../../core/second-opinion.ts';
import { intervalPair, type Sample } from '../../store/candle/other-intervals.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { dropClaim, findClaim, recordAnswer } from '../../store/work/second-opinion.ts';
import type { Implausible } from '../plausibility/implausible-candles.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';

/** The result of comparing an answer that is now stored with another interval. */
export type Compared = { readonly found: Implausible | null; readonly samples: readonly Sample[] };

/** After this time, a coin counts again even if no other coin differs: a difference that lasts for weeks is no single false answer. */
const AGAIN_MS = 7 * DAY;

/** A difference that a second answer confirmed counts once for each coin and week. An answer without a difference deletes the whole claim. */
export async function recordDifference(
  sql: Sql,
  { interval, coinId }: Pick<ChunkJob, 'interval' | 'coinId'>,
  { found, samples }: Compared,
  received: Omit<ClaimAnswer, 'says'>,
): Promise<void> {
  const [sample] = samples;
  if (sample === undefined) return;
  const id = { claim: 'intervals differ', key: intervalPair(interval, sample.interval) } as const;
  if (found === null) return sample.hasDiffered ? dropClaim(sql, id) : undefined;
  const coin = `${coinId}@${Math.floor(received.receivedAt / AGAIN_MS)}`;
  if (found.kind !== 'other interval' || coinsOf(await findClaim(sql, id)).includes(coin)) return;
  await sql.begin((tx) =>
    recordAnswer(tx, id, received, (before) => ({
      says: 'agrees',
      evidence: { coins: [...coinsOf(before), coin].join(' ') },
    })),
  );
}

type DifferingCoins = { readonly evidence: { readonly [name: string]: unknown } | null } | null;

function coinsOf(claim: DifferingCoins): readonly string[] {
  const coins = claim?.evidence?.coins;
  return typeof coins === 'string' ? coins.split(' ') : [];
}
