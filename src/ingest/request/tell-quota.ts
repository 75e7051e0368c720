/** Tells the quota what an answer of the upstream means for everybody who sends requests for this account. */
import type { Quota, Spender } from '../../quota/quota.ts';
import type { Answer } from '../../upstream/answer.ts';

/** Of an answer that is no redirect. */
export type FinalAnswer = Exclude<Answer, { kind: 'moved' }>;

/** A pause that another host than REST's asks for holds REST for at most so long. */
const LONGEST_PAUSE_OF_OTHER_HOST_MS = 60_000;

/** Stops this process at once, before anything is recorded: permits that are granted already must wait as well. */
export function pauseAtOnce(quota: Quota, answer: Answer): void {
  if (answer.kind === 'limited' && answer.by === 'rate')
    quota.pause({ reason: 'limited', retryAfterMs: answer.retryAfterMs });
  if (answer.kind === 'unavailable') quota.pause({ reason: 'unavailable', retryAfterMs: answer.retryAfterMs });
}

/** Records in the ledger what the whole account learns from one answer. Whoever judged the quota exhausted has recorded that already. */
export async function tellQuota(
  quota: Quota,
  answer: FinalAnswer,
  { asksAccount = false }: Pick<Spender, 'asksAccount'>,
): Promise<void> {
  const { sentAt } = answer.exchange;
  switch (answer.kind) {
    case 'answered':
      return quota.answered({ sentAt });
    case 'refused':
      // Where there should be candles, an unknown route is an outage. That there is no route to the account is normal (decision 7).
      if (answer.reason === 'unknown route' && !asksAccount)
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

/** An answer of another host than REST's concerns REST only when it asks for a pause, and then for a minute at most. */
export async function tellPauseOfOtherHost(quota: Quota, answer: FinalAnswer): Promise<void> {
  if (answer.kind !== 'limited' || answer.by !== 'rate') return;
  const retryAfterMs = Math.min(answer.retryAfterMs ?? LONGEST_PAUSE_OF_OTHER_HOST_MS, LONGEST_PAUSE_OF_OTHER_HOST_MS);
  quota.pause({ reason: 'limited', retryAfterMs });
  await quota.limited({ sentAt: answer.exchange.sentAt, retryAfterMs, message: answer.message });
}
