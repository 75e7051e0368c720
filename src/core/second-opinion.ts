/**
 * Second opinions, for facts that one answer is not enough to prove. Chandler stores such a claim with its evidence and requests it again at a
 * set instant or later. It believes the claim when enough answers agree, and drops it when one contradicts it. The functions here are pure;
 * `store/work/second-opinion.ts` stores the claims in one table.
 *
 * To add a claim (for example, that all prices of an answer are zero):
 *
 * 1. Add a rule to `RULES`, with the reason for its numbers.
 * 2. Where the code finds the implausible answer, call `recordAnswer` of the store. If the result is `believed`, store the answer; else store
 *    nothing of it, and request it again at `retryAt`.
 * 3. When a plausible answer arrives and a claim exists, let the answer contradict the claim in the same transaction. Look for a claim only if
 *    data that is read anyway shows that there may be one: a plausible answer must cost no extra statement.
 */
import type { Instant } from '../clock.ts';
import { DAY, HOUR } from './interval.ts';

/** The upstream's caches repeat a 402 for 60 s, and for 10 s more while they revalidate it: an earlier request would get the same answer. */
export const REQUEST_AGAIN_MS = 75_000;
/** The upstream's caches keep an answer for at most one minute, and ten more minutes while the upstream fails (upstream-api.md, section 0). */
export const LONGEST_CACHED_MS = 11 * 60_000;
/** The shortest wait after an answer from a cache, also when its age is near or above `LONGEST_CACHED_MS`. */
const LEAST_CACHED_MS = 60_000;

/** `Age` is in whole seconds, rounded down: the answer may be almost a second older. */
const AGE_STEP_MS = 1_000;

export type Rule = {
  /** Answers that must agree before the claim is believed, the first one included. */
  readonly agreeing: number;
  /** Milliseconds from one answer until the next one may count. */
  readonly waitMs: number;
  /** Shorter waits that come first, in this order: a short fault is over when the same run requests the chunk again. */
  readonly firstWaitsMs?: readonly number[];
  /** Each wait is the previous wait times `growth`, at most `mostWaitMs`. The wait grows also when the answers differ. */
  readonly growth?: number;
  readonly mostWaitMs?: number;
  /** Milliseconds from the answer that made the claim believed until the next one may count. */
  readonly believedMs: number;
  /** A claim is forgotten after this many milliseconds without an answer about it. */
  readonly forgetMs: number;
};

const NEVER = Number.POSITIVE_INFINITY;

/** A run requests a slot again itself if the next answer is due within this time; it leaves longer waits to a later run. */
export const WITHIN_RUN_MS = 15_000;
const QUARTER_MS = 15 * 60_000;

/** The rules by name of the claim, as in the column `claim`. */
export const RULES = {
  /**
   * A slot without a candle at the edge of an answer. The answers must be an hour apart, so that no cache and no short fault of the upstream
   * causes both. Only the wait of this rule is used: the two answers may arrive in any order, so `ops.fetch` stores what each of them
   * contained (`ingest/chunk/evidence.ts`).
   */
  unconfirmed: { agreeing: 2, waitMs: HOUR, believedMs: NEVER, forgetMs: NEVER },
  /**
   * A row that cannot be true. The upstream repairs most such rows at once, some soon, a few never. So the waits are 2 and 5 seconds, 2, 20
   * and 200 minutes, then a day. The first two are so short that the same run requests the row again. The fifth equal row is
   * believed: the first three arrive within seconds, and prove little more than one.
   */
  malformed: {
    agreeing: 5,
    firstWaitsMs: [2_000, 5_000],
    waitMs: 2 * 60_000,
    growth: 10,
    mostWaitMs: DAY,
    believedMs: NEVER,
    forgetMs: NEVER,
  },
  /**
   * Candles that are well-formed but implausible: all zero, far from their neighbours, or changes to many final candles. An answer that
   * does not come from a cache must contain the same. If it contains other implausible candles, the waits grow.
   */
  implausible: {
    agreeing: 2,
    waitMs: REQUEST_AGAIN_MS,
    growth: 4,
    mostWaitMs: DAY,
    believedMs: NEVER,
    forgetMs: NEVER,
  },
  /**
   * Two intervals of the upstream have different prices for the same time, and a second answer confirmed it. The cause may be one false answer
   * that is stored by now, so it takes three coins, or one coin in three weeks. Then Chandler stops comparing these intervals for a month.
   */
  'intervals differ': { agreeing: 3, waitMs: 0, believedMs: 0, forgetMs: 30 * DAY },
  /**
   * A history limit where none is expected. A limit holds for every series of its interval. So the next request from beyond the limit, for
   * any series, is the second opinion. No cache can answer that request with the first answer, so there is no wait.
   */
  'history limit': { agreeing: 2, waitMs: 0, believedMs: 0, forgetMs: DAY },
  /** A 402 without a text, although requests are left: it may mean that the plan does not include this series. Another request decides. */
  'series without payment': { agreeing: 2, waitMs: 0, believedMs: 0, forgetMs: DAY },
  /** The same for one chunk; the wait is longer than the caches keep a 402. */
  'chunk without payment': { agreeing: 2, waitMs: REQUEST_AGAIN_MS, believedMs: REQUEST_AGAIN_MS, forgetMs: DAY },
  /** One chunk gets a history limit that is not believed, because other chunks get candles. After the fourth time Chandler skips its span. */
  'refused chunk': { agreeing: 4, waitMs: REQUEST_AGAIN_MS, believedMs: REQUEST_AGAIN_MS, forgetMs: DAY },
  /** The upstream does not have the last full day yet. Chandler requests it again a quarter of an hour later, for one coin or a few. */
  'day is late': { agreeing: 2, waitMs: QUARTER_MS, believedMs: QUARTER_MS, forgetMs: DAY },
  /** The upstream refuses a kind of the catalogue. Two refusals may be chance; after the third, Chandler requests the kind once a month. */
  'catalogue refusal': {
    agreeing: 3,
    waitMs: 60_000,
    growth: 4,
    mostWaitMs: DAY,
    believedMs: 30 * DAY,
    forgetMs: NEVER,
  },
  /** A list that lost many of its rows. The second answer must not come from a cache. */
  'short list': { agreeing: 2, waitMs: REQUEST_AGAIN_MS, believedMs: REQUEST_AGAIN_MS, forgetMs: 30 * DAY },
} as const satisfies Record<string, Rule>;

/** For a history limit when the upstream has answered from beyond it before: a short fault is likelier, so four answers must agree. */
export const CONTRADICTED_HISTORY_LIMIT: Rule = { ...RULES['history limit'], agreeing: 4 };

export type ClaimName = keyof typeof RULES;

/** The current state of a claim. */
export type Standing = {
  /** Answers that agreed so far. */
  readonly answers: number;
  /** The `receivedAt` of the last answer that changed this state. Answers to requests up to then prove nothing new. */
  readonly requestedAt: Instant;
  /** Answers to earlier requests do not count. Infinite when Chandler does not request it again automatically. */
  readonly retryAt: Instant;
};

/** One more answer about a claim. Instants are of our own clock. */
export type ClaimAnswer = {
  /** The answer repeats the claim (`agrees`), makes another claim of the same kind (`differs`), or proves the claim wrong (`contradicts`). */
  readonly says: 'agrees' | 'differs' | 'contradicts';
  readonly sentAt: Instant;
  /** Only answers to requests after this instant count as another answer. */
  readonly receivedAt: Instant;
  /** Milliseconds that a cache has stored the answer; 0 when it does not come from a cache. */
  readonly ageMs: number;
};

export type JudgedAnswer =
  | { readonly kind: 'waiting' | 'believed'; readonly standing: Standing; readonly isCounted: boolean }
  | { readonly kind: 'dropped' };

/**
 * The state of a claim after one more answer. `before` is null when this is the first answer. An answer does not count when it was requested
 * before `retryAt`, or when a cache repeated an earlier answer. For an answer that agrees, a believed claim stays believed.
 */
export function judgeAnswer(before: Standing | null, answer: ClaimAnswer, rule: Rule): JudgedAnswer {
  const { says, sentAt, receivedAt, ageMs } = answer;
  const stood = before !== null && sentAt - before.requestedAt <= rule.forgetMs ? before : null;
  const isOld = stood !== null && sentAt - ageMs - (ageMs > 0 ? AGE_STEP_MS : 0) <= stood.requestedAt;
  if (says === 'contradicts')
    return isOld ? { kind: 'waiting', standing: stood, isCounted: false } : { kind: 'dropped' };
  const uncounted = (standing: Standing): JudgedAnswer => {
    const isBelieved = says === 'agrees' && standing.answers >= rule.agreeing;
    return { kind: isBelieved ? 'believed' : 'waiting', standing, isCounted: false };
  };
  if (stood !== null && sentAt < stood.retryAt) return uncounted(stood);
  const notBefore = afterCaches(sentAt, ageMs);
  if (isOld) return uncounted({ ...stood, requestedAt: receivedAt, retryAt: Math.max(receivedAt, notBefore) });

  const answers = 1 + (stood !== null && says === 'agrees' ? stood.answers : 0);
  const isBelieved = answers >= rule.agreeing;
  const wait = isBelieved ? rule.believedMs : nextWait(stood, rule);
  const standing = { answers, requestedAt: receivedAt, retryAt: Math.max(receivedAt + wait, notBefore) };
  return { kind: isBelieved ? 'believed' : 'waiting', standing, isCounted: true };
}

/** Milliseconds from the next answer until another one may count. */
export function nextWait(before: Pick<Standing, 'requestedAt' | 'retryAt'> | null, rule: Rule): number {
  const { firstWaitsMs = [], waitMs, growth, mostWaitMs = NEVER } = rule;
  const last = before === null ? 0 : before.retryAt - before.requestedAt;
  const short = firstWaitsMs.find((ms) => ms > last);
  if (short !== undefined) return short;
  if (growth === undefined || before === null || last < waitMs) return waitMs;
  return Math.min(last * growth, mostWaitMs);
}

/** Two short lists agree if their lengths differ by at most a tenth. `rowsBefore` is undefined when there was no earlier one. */
export function judgeLength(rowsBefore: unknown, rows: number) {
  const agrees = typeof rowsBefore === 'number' && Math.abs(rows - rowsBefore) <= rowsBefore * SHORT_LISTS_DIFFER;
  return { says: agrees ? 'agrees' : 'differs', evidence: { rows } } as const;
}

const SHORT_LISTS_DIFFER = 0.1;

/** When an answer of this age is worth another request: a cache repeats the same answer until it has dropped it. */
export function afterCaches(sentAt: Instant, ageMs: number): Instant {
  return ageMs > 0 ? sentAt + Math.max(LONGEST_CACHED_MS - ageMs, LEAST_CACHED_MS) : sentAt;
}
