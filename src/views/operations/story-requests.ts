/** The records of `ops` about the requests of one slot: the requests, and the claims that need a second opinion. */
import type { Instant } from '../../clock.ts';
import { formatCounted, formatInstant } from '../../core/format.ts';
import { rowNoun, type SeriesName } from '../../core/interval.ts';
import { HOLES } from '../../store/candle/holes.ts';
import type { Sql } from '../../store/connection/connect.ts';

export type StoryEvent = {
  readonly at: Instant;
  /**
   * One word: those of `market.story`; backfill and tracked (who wanted the slot), asked (a request), claim (it needs a second opinion), note
   * (something is not known any more).
   */
  readonly event: string;
  /** Sentences, with instants in UTC. */
  readonly detail: string;
};

export type Slot = SeriesName & {
  readonly from: Instant;
  readonly seriesId: number;
};

type RequestFacts = {
  readonly id: number;
  readonly sentAt: Instant;
  readonly asOf: Instant;
  readonly backfillId: number | null;
  readonly requestedBy: string | null;
  readonly attempt: number;
  readonly status: number | null;
  readonly outcome: string;
  readonly rows: number;
  readonly quarantined: number;
  readonly message: string | null;
  readonly accountId: string;
  readonly subject: string | null;
  readonly told: boolean | null;
  readonly unconfirmed: boolean | null;
};

/** The requests about the slot whose records are kept. */
export async function readRequests(sql: Sql, { interval, from, seriesId }: Slot): Promise<StoryEvent[]> {
  const rows = await sql<RequestFacts[]>`
    select f.id, f.sent_at, f.as_of, f.backfill_id, b.requested_by, f.attempt, f.status, f.outcome, f.rows, f.quarantined, f.message,
      f.account_id, f.subject, f.answered_slots @> ${from}::timestamptz as told, f.unconfirmed_slots @> ${from}::timestamptz as unconfirmed
    from ops.fetch f left join ops.backfill b on b.id = f.backfill_id
    where f.series_id = ${seriesId} and f.span @> ${from}::timestamptz
    order by f.sent_at, f.id`;
  const noun = rowNoun(interval);
  return rows.map((row) => ({ at: row.sentAt, event: 'asked', detail: describeRequest(row, noun) }));
}

function describeRequest(row: RequestFacts, noun: 'candle' | 'price'): string {
  const by = row.requestedBy === null ? '' : ` by ${row.requestedBy}`;
  const bySchedule = row.subject === HOLES ? 'to confirm holes' : 'to keep the series fresh';
  const why = row.backfillId === null ? bySchedule : `for backfill ${row.backfillId}${by}`;
  const again = row.attempt > 1 ? `, attempt ${row.attempt}` : '';
  const begin = `Request ${row.id}, ${why}${again}, with account ${row.accountId}`;
  if (row.outcome !== 'stored') {
    const status = row.status === null ? 'no answer came' : `HTTP status ${row.status}`;
    return `${begin}: ${row.outcome} (${status})${row.message === null ? '' : `: ${row.message}`}.`;
  }
  const quarantined = row.quarantined === 0 ? '' : `, ${formatCounted(row.quarantined, 'row')} quarantined`;
  const said = row.told
    ? ` The answer contains the slot, or ${noun}s on both sides of it.`
    : row.unconfirmed
      ? ` The slot is at the edge of the answer, without a ${noun}.`
      : '';
  return `${begin}: stored, ${formatCounted(row.rows, 'row')}${quarantined}, as of ${formatInstant(row.asOf)}.${said}`;
}

type ClaimFacts = {
  readonly claim: string;
  readonly answers: number;
  readonly requestedAt: Instant;
  readonly retryAt: Instant;
};

/** Claims about the slot that need a second opinion. */
export async function readClaims(sql: Sql, { from, seriesId }: Slot): Promise<StoryEvent[]> {
  const rows = await sql<ClaimFacts[]>`
    select claim, answers, requested_at, retry_at from ops.second_opinion
    where series_id = ${seriesId} and span @> ${from}::timestamptz order by requested_at, claim`;
  return rows.map(({ claim, answers, requestedAt, retryAt }) => ({
    at: requestedAt,
    event: 'claim',
    detail:
      `${whyUnsettled(claim, answers)} ` +
      (Number.isFinite(retryAt)
        ? `Chandler may request it again from ${formatInstant(retryAt)}.`
        : 'Chandler does not request it again automatically.'),
  }));
}

function whyUnsettled(claim: string, answers: number): string {
  if (claim === 'provisional') return 'The slot was too recent for a final answer (provisional).';
  return `One answer is not enough here (${claim}); ${formatCounted(answers, 'answer')} so far.`;
}

/** A note that requests may be missing. Evidence stays, but the records of its requests may have been removed because of their age. */
export async function readRemovedRequests(sql: Sql, { from, seriesId }: Slot): Promise<StoryEvent[]> {
  const rows = await sql<{ at: Instant }[]>`
    select e.known_at + coalesce(e.step_seconds[cardinality(e.step_seconds)], 0) * interval '1 second' as at
    from market.evidence e
    where e.series_id = ${seriesId} and e.slots @> ${from}::timestamptz and e.fetch_id is not null
      and not exists (select from ops.fetch f where f.id = e.fetch_id)
    order by e.number desc limit 1`;
  return rows.map(({ at }) => ({
    at,
    event: 'note',
    detail:
      'Requests up to here may be missing: Chandler removed their records because of their age. The evidence stays.',
  }));
}
