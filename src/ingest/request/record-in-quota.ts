/** Tells the quota what an answer of the upstream means for all processes that send requests for this account. */
import type { Quota, Spender } from '../../quota/quota.ts';
import type { Answer } from '../../upstream/answer.ts';

/** An answer that is no redirect. */
export type FinalAnswer = Exclude<Answer, { kind: 'moved' }>;

/** A pause that another host requests stops REST for at most this long. */
const LONGEST_PAUSE_OF_OTHER_HOST_MS = 60_000;

/** Pauses this process at once, before anything is recorded: permits that are already granted must wait as well. */
export function pauseAtOnce(quota: Quota, answer: Answer): void {
  if (answer.kind === 'limited' && answer.by === 'rate')
    quota.pause({ reason: 'limited', retryAfterMs: answer.retryAfterMs });
  if (answer.kind === 'unavailable') quota.pause({ reason: 'unavailable', retryAfterMs: answer.retryAfterMs });
}

/**
 * Records in the ledger what the whole account learns from one answer. If the quota is exhausted, the judge of the 402 has already recorded that.
 */
export async function recordInQuota(
  quota: Quota,
  answer: FinalAnswer,
  { isAccountRequest = false }: Pick<Spender, 'isAccountRequest'>,
): Promise<void> {
  const { sentAt } = answer.exchange;
  switch (answer.kind) {
    case 'answered':
      return quota.answered({ sentAt });
    case 'refused':
      // An unknown route for candles means an outage. For the account it is normal (decision 7).
      if (answer.reason === 'unknown route' && !isAccountRequest)
        return quota.unavailable({ sentAt, retryAfterMs: null, message: answer.message });
      return quota.answered({ sentAt });
    case 'limited':
      if (answer.by === 'rate')
        await quota.limited({ sentAt, retryAfterMs: answer.retryAfterMs, message: answer.message });
      return;
    case 'unavailable':
      return quota.unavailable({ sentAt, retryAfterMs: answer.retryAfterMs, message: answer.message });
    case 'malformed':
      return quota.unavailable({ sentAt, retryAfterMs: null, message: answer.message });
  }
}

/** An answer of another host than REST's affects REST only when it requests a pause, for a minute at most. */
export async function recordPauseOfOtherHost(quota: Quota, answer: FinalAnswer): Promise<void> {
  if (answer.kind !== 'limited' || answer.by !== 'rate') return;
  const retryAfterMs = Math.min(answer.retryAfterMs ?? LONGEST_PAUSE_OF_OTHER_HOST_MS, LONGEST_PAUSE_OF_OTHER_HOST_MS);
  quota.pause({ reason: 'limited', retryAfterMs });
  await quota.limited({ sentAt: answer.exchange.sentAt, retryAfterMs, message: answer.message });
}
