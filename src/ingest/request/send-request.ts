/** Asks the upstream one question: a turn from the quota, one request, its record; and again only for a redirect or the other way to send the key. */
import type { Clock, Instant } from '../../clock.ts';
import type { Span, Spans } from '../../core/span.ts';
import { waitTurn } from '../../quota/permit.ts';
import type { Quota, Spender, Stretch, Take } from '../../quota/quota.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type FetchRow, recordFetchOnce } from '../../store/work/fetch.ts';
import type { Answer, Question, Upstream } from '../../upstream/answer.ts';
import { Misconfigured, Unreachable } from '../outcome.ts';
import type { KeyManner, KeySent } from './auth-scheme.ts';
import { unreachable, wrongAddress } from './configuration-errors.ts';
import { impatient, type Patience } from './outage-retry.ts';
import type { Contact } from './reachability.ts';

export type AskDetails = Pick<FetchRow, 'endpoint'> &
  Partial<Pick<FetchRow, 'seriesId' | 'span' | 'backfillId' | 'attempt' | 'subject'>>;

/**
 * How one question is asked; `signal` ends the wait for a turn, never a request that is under way. `patience` is for a database
 * that is away; without it such a question rejects.
 */
export type AskOptions = {
  readonly spender: Spender;
  readonly record: AskDetails;
  readonly signal?: AbortSignal | undefined;
  readonly patience?: Patience;
  /** Upstream may have no such route: then that is an answer, and no outage. */
  readonly mayLack?: boolean;
};

/** What is asked at once, as it is. */
export type PlainQuestion = Pick<Question, 'path' | 'query' | 'withText' | 'rpc'>;

/** A question whose extent is only known when its turn comes: what of the stretch is still worth a request then. */
export type LateQuestion = {
  readonly stretch: Stretch;
  /** `gaps` is never empty. */
  readonly about: (gaps: Spans) => Pick<Question, 'path' | 'query'> & {
    readonly span: Span;
    /** By its documents, the plan does not include what is asked. */
    readonly beyondPlan: boolean;
  };
};

export type Asked =
  /** Nothing was sent: the budget says no until then. */
  | { readonly kind: 'held'; readonly until: Instant; readonly reason: Extract<Take, { kind: 'denied' }>['reason'] }
  /** One answer. `record` is the row of `ops.fetch` it becomes; all but an `answered` one are recorded already. */
  | {
      readonly kind: 'asked';
      readonly answer: Exclude<Answer, { kind: 'moved' }>;
      readonly record: FetchRow;
      /** The number of that row; null as long as it is not recorded. */
      readonly fetchId: number | null;
      readonly requests: number;
      /** A 402 that names no wall, and there is budget by all that is known: perhaps this is not in the plan. */
      readonly budgetLeft: boolean;
      /** Redirects without an end; worth one more try in a run, for each try costs several requests. */
      readonly ledAround: boolean;
      /** How the key was sent, for who must say that it was refused. */
      readonly keySent: KeySent;
    };

/**
 * @throws Misconfigured when nobody is there who could be the upstream, and nobody ever was; or when one is led around a
 * second time and nothing else has been answered.
 */
export type Ask = {
  (question: PlainQuestion, options: AskOptions): Promise<Asked>;
  (question: LateQuestion, options: AskOptions): Promise<Asked | Unasked>;
};

/** As an answer to a `LateQuestion` there may be none at all: nothing of it is worth a request any more, and none was spent. */
export type Unasked = { readonly kind: 'unwanted' };

/**
 * A 402 whose text is no wall's: is the month spent, or is there budget left, so that it means something else? Whoever judges
 * "spent" has made everybody wait before it resolves. "not told": the run ended before the account could be asked.
 */
export type JudgeSpent = (answer: Limited, beyondPlan: boolean) => Promise<'spent' | 'budget left' | 'not told'>;
type Limited = Extract<Answer, { kind: 'limited' }>;

/** A pause that another host than REST's asks for is at most so long for REST. */
const LONGEST_PAUSE_ASIDE_MS = 60_000;
const MOST_REDIRECTS = 3;
const MOST_LED_AROUND = 2;

export function createAsk({
  upstream,
  baseUrl,
  contact,
  quota,
  manner,
  sql,
  clock,
  accountId,
  judgeSpent,
  isAside = false,
}: {
  readonly upstream: Upstream;
  readonly baseUrl: string;
  readonly contact: Contact;
  readonly quota: Quota;
  readonly manner: KeyManner;
  readonly sql: Sql;
  readonly clock: Clock;
  readonly accountId: string;
  readonly judgeSpent: JudgeSpent;
  /**
   * It is another host than REST's (the vendor's JSON-RPC interface): what goes wrong there is no trouble of REST's, and nothing
   * configured wrongly. A pause that it asks for is heeded, for a minute at most.
   */
  readonly isAside?: boolean;
}): Ask {
  let hasAnswered = false;
  /** How often one was led around since the last answer. */
  let ledAround = 0;
  const ask = async (
    asked: PlainQuestion | LateQuestion,
    { spender, record: kind, signal, patience = impatient, mayLack = false }: AskOptions,
  ): Promise<Asked | Unasked> => {
    const keep = (row: FetchRow) => patience((again) => recordFetchOnce(sql, row, again));
    const take = (stretch?: Stretch) =>
      patience(() => waitTurn({ quota, spender, stretch, clock, ...(signal ? { signal } : {}) }));
    let turn = 'stretch' in asked ? await take(asked.stretch) : await take();
    if (turn.kind === 'unwanted') return turn;
    if (turn.kind === 'denied') return { kind: 'held', until: turn.until, reason: turn.reason };
    const late = 'stretch' in asked ? asked.about(turn.gaps!) : null;
    const first: Question = late ? { path: late.path, query: late.query } : (asked as Question);
    const details = late ? { ...kind, span: late.span } : kind;
    const beyondPlan = late?.beyondPlan ?? false;
    let question = first;
    let redirects = 0;
    for (let requests = 1; ; requests++) {
      // A second step, of a redirect or with the key sent the other way, belongs to the request that was worth it.
      if (requests > 1) turn = await take();
      if (turn.kind === 'denied') {
        // The probe after an outage may have been a redirect: next time its first step lets the second one through.
        if (redirects > 0) ledAround = 0;
        return { kind: 'held', until: turn.until, reason: turn.reason };
      }
      const scheme = manner.current();
      const answer = await upstream.send({ ...question, scheme });
      if (!isAside) heed(quota, answer);
      if (!isAside && (await patience(() => contact.isMissing(answer.exchange)))) {
        await keep(toRecord(answer, accountId, details));
        throw new Unreachable(unreachableAt(baseUrl, answer));
      }
      const spent = !isAside && answer.kind === 'limited' && answer.by === 'spent' && !spender.asksAccount;
      const budgetLeft = spent && (await patience(() => judgeSpent(answer, beyondPlan))) === 'budget left';
      const record = toRecord(answer, accountId, details);
      if (answer.kind === 'moved') {
        const fetchId = await keep(record);
        if (++redirects <= MOST_REDIRECTS) {
          // Steps that led nowhere before are no sign of life: they would end the streak that they are.
          if (ledAround === 0 && !isAside) await patience(() => quota.answered({ sentAt: answer.exchange.sentAt }));
          question = { ...first, path: answer.path, absolute: true, query: {} };
          continue;
        }
        const message = `redirected more than ${MOST_REDIRECTS} times, last to ${answer.shown}`;
        const end = { kind: 'malformed', message, astray: false, exchange: answer.exchange } as const;
        if (!isAside) await patience(() => tellQuota(quota, end, spender));
        if (++ledAround >= MOST_LED_AROUND && !hasAnswered && !isAside) throw new Misconfigured(wrongAddress(message));
        return {
          kind: 'asked',
          answer: end,
          record,
          fetchId,
          requests,
          budgetLeft,
          ledAround: true,
          keySent: manner.sent(),
        };
      }
      if (answer.kind === 'answered') {
        hasAnswered = true;
        ledAround = 0;
      }
      const forbidden = answer.kind === 'refused' && answer.reason === 'forbidden';
      if (answer.kind === 'answered' || (answer.kind === 'refused' && !forbidden))
        await patience(() => manner.accepted(scheme));
      const fetchId = answer.kind === 'answered' ? null : await keep(record);
      if (isAside) await patience(() => tellPause(quota, answer));
      else if (mayLack && answer.kind === 'refused')
        await patience(() => quota.answered({ sentAt: answer.exchange.sentAt }));
      else
        await patience(() =>
          budgetLeft ? quota.answered({ sentAt: answer.exchange.sentAt }) : tellQuota(quota, answer, spender),
        );
      if (forbidden && manner.refused(scheme)) continue;
      return { kind: 'asked', answer, record, fetchId, requests, budgetLeft, ledAround: false, keySent: manner.sent() };
    }
  };
  return ask as Ask;
}

/** The ledger is not told: it would hold back who has corrected the address. */
function unreachableAt(baseUrl: string, { exchange, ...answer }: Answer): string {
  return unreachable(baseUrl, 'message' in answer ? answer.message : '', exchange.noContact!);
}

/** Before anything else: while it is written down, others wait for turns that are granted already. */
function heed(quota: Quota, answer: Answer): void {
  if (answer.kind === 'limited' && answer.by === 'pace')
    quota.pause({ reason: 'limited', retryAfterMs: answer.retryAfterMs });
  if (answer.kind === 'unavailable') quota.pause({ reason: 'unavailable', retryAfterMs: answer.retryAfterMs });
}

/** What the whole account learns from one answer; of a spent month it has been told by the judge. */
async function tellQuota(
  quota: Quota,
  answer: Exclude<Answer, { kind: 'moved' }>,
  { asksAccount = false }: Spender,
): Promise<void> {
  const { sentAt } = answer.exchange;
  switch (answer.kind) {
    case 'refused':
      // Where there should be candles, no route is an outage. That there is none to the account is nothing new (decision 7).
      if (answer.reason === 'unknown route' && !asksAccount)
        return quota.unavailable({ sentAt, retryAfterMs: null, message: answer.message });
      return quota.answered({ sentAt });
    case 'answered':
      return quota.answered({ sentAt });
    case 'limited':
      return answer.by === 'pace'
        ? quota.limited({ sentAt, retryAfterMs: answer.retryAfterMs, message: answer.message })
        : undefined;
    case 'unavailable':
      return quota.unavailable({ sentAt, retryAfterMs: answer.retryAfterMs, message: answer.message });
    case 'malformed':
      return quota.unavailable({ sentAt, retryAfterMs: null, message: answer.message });
  }
}

async function tellPause(quota: Quota, answer: Exclude<Answer, { kind: 'moved' }>): Promise<void> {
  if (answer.kind !== 'limited' || answer.by !== 'pace') return;
  const retryAfterMs = Math.min(answer.retryAfterMs ?? LONGEST_PAUSE_ASIDE_MS, LONGEST_PAUSE_ASIDE_MS);
  quota.pause({ reason: 'limited', retryAfterMs });
  await quota.limited({ sentAt: answer.exchange.sentAt, retryAfterMs, message: answer.message });
}

function toRecord(answer: Answer, accountId: string, details: AskDetails): FetchRow {
  const { exchange } = answer;
  return {
    endpoint: details.endpoint,
    seriesId: details.seriesId ?? null,
    span: details.span ?? null,
    backfillId: details.backfillId ?? null,
    attempt: details.attempt ?? 1,
    subject: details.subject ?? null,
    sentAt: exchange.sentAt,
    asOf: exchange.asOf,
    status: exchange.status,
    durationMs: Math.round(exchange.durationMs),
    bytes: exchange.bytes,
    bodySha256: exchange.bodySha256,
    accountId,
    outcome: answer.kind === 'refused' ? answer.reason : answer.kind,
    message: 'message' in answer ? answer.message : null,
    rows: 0,
    stored: 0,
    revised: 0,
    setAside: 0,
  };
}
