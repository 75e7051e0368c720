/**
 * Second opinions: where one answer is not enough. A claim is kept with its evidence, asked again not before an instant, believed
 * when enough answers agree, and dropped when one contradicts it. Pure: `store/work/second-opinion.ts` keeps the claims in one table.
 *
 * For a new claim (say, of an answer whose prices are all zero):
 *
 * 1. Add a rule to `RULES`, with the reason for its numbers.
 * 2. Where the implausible answer is found, call `recordAnswer` of the store. Store what was answered if the result is `believed`; else store
 *    nothing of it, and ask again at `retryAt`.
 * 3. Where a plausible answer comes for which a claim is known, let it contradict the claim in the same transaction. Look for a claim only if
 *    something that is read anyway says that there may be one: a plausible answer costs no statement.
 */
import type { Instant } from '../clock.ts';
import { DAY, HOUR } from './interval.ts';

/** The upstream's caches repeat a 402 for 60 s, and for 10 more while they look again: sooner it would be the same answer. */
export const ASK_AGAIN_MS = 75_000;
/** The upstream's caches keep an answer so long at most: a minute, and ten more while it fails (upstream-api.md, section 0). */
export const LONGEST_CACHED_MS = 11 * 60_000;
/** For an answer that is older than any should be. */
const LEAST_CACHED_MS = 60_000;

/** `Age` is in whole seconds, rounded down: the answer may be older by nearly one. */
const AGE_STEP_MS = 1_000;

export type Rule = {
  /** Answers that must agree before the claim is believed, the first one included. */
  readonly agreeing: number;
  /** From one answer until the next one may count. */
  readonly waitMs: number;
  /** Shorter waits that come first, in this order: a fault of a moment is over when the run that met it asks again. */
  readonly firstWaitsMs?: readonly number[];
  /** Each wait is so many times the one before, at most `mostWaitMs`; it grows also when the answers differ. */
  readonly growth?: number;
  readonly mostWaitMs?: number;
  /** From the answer that made the claim believed until the next one may count. */
  readonly believedMs: number;
  /** A claim is forgotten when no answer about it came for so long. */
  readonly forgetMs: number;
};

const NEVER = Number.POSITIVE_INFINITY;

/** A slot whose next answer is due within so long is asked about again by the run that met it; a longer wait is left to a later run. */
export const WITHIN_RUN_MS = 15_000;
const QUARTER_MS = 15 * 60_000;

/** By what is claimed, as in the column `claim`. */
export const RULES = {
  /**
   * A slot without a candle at the edge of an answer. An hour apart, so that no cache and no short fault of the upstream gives both
   * answers. Of this rule only the wait is used: the two answers may come in any order, so `ops.fetch` keeps what each of them said
   * (`ingest/chunk/evidence.ts`).
   */
  unconfirmed: { agreeing: 2, waitMs: HOUR, believedMs: NEVER, forgetMs: NEVER },
  /**
   * A row that cannot be true. Most are mended at once, some soon, a few never: 2 and 5 seconds, 2, 20, 200 minutes, then once a day. The
   * first two waits are so short that the same run asks again. The fifth equal row is the last word: the first three come within seconds,
   * and say little more than one.
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
   * Candles that are well-formed and implausible: all zero, far from their neighbours, many final ones changed. An answer that no cache
   * repeats must say the same. If it says something else that is implausible, the waits grow.
   */
  implausible: { agreeing: 2, waitMs: ASK_AGAIN_MS, growth: 4, mostWaitMs: DAY, believedMs: NEVER, forgetMs: NEVER },
  /**
   * Two intervals of the upstream have other prices for the same stretch, which a second answer confirmed. That may be one false answer that is
   * stored by now, so it takes three coins, or one in three weeks. Then these intervals are not compared any more; after a month they are again.
   */
  'intervals differ': { agreeing: 3, waitMs: 0, believedMs: 0, forgetMs: 30 * DAY },
  /**
   * A history limit where none is expected. It holds for every series of its interval, so the next request from beyond it, for whichever
   * series, is the second opinion: no cache can repeat the first answer to that, and there is nothing to wait for.
   */
  'history limit': { agreeing: 2, waitMs: 0, believedMs: 0, forgetMs: DAY },
  /** A 402 without a text, although requests are left: it may mean that the plan does not include this series. Another request tells. */
  'series without payment': { agreeing: 2, waitMs: 0, believedMs: 0, forgetMs: DAY },
  /** The same for one chunk, after the caches. */
  'chunk without payment': { agreeing: 2, waitMs: ASK_AGAIN_MS, believedMs: ASK_AGAIN_MS, forgetMs: DAY },
  /** One chunk meets a history limit that is not believed, because others are answered: after the fourth time its span is left alone. */
  'refused chunk': { agreeing: 4, waitMs: ASK_AGAIN_MS, believedMs: ASK_AGAIN_MS, forgetMs: DAY },
  /** The upstream has not gone on to the last full day yet: it is asked again a quarter of an hour later, about one coin or a few. */
  'day is late': { agreeing: 2, waitMs: QUARTER_MS, believedMs: QUARTER_MS, forgetMs: DAY },
  /** A kind of the catalogue is refused. Two refusals may be chance; after the third the kind is requested once a month. */
  'catalogue refusal': {
    agreeing: 3,
    waitMs: 60_000,
    growth: 4,
    mostWaitMs: DAY,
    believedMs: 30 * DAY,
    forgetMs: NEVER,
  },
  /** A list that lost many of its rows: a second answer, which no cache repeats. */
  'short list': { agreeing: 2, waitMs: ASK_AGAIN_MS, believedMs: ASK_AGAIN_MS, forgetMs: 30 * DAY },
} as const satisfies Record<string, Rule>;

/** A history limit where upstream has answered from beyond before: a lie of the moment is likelier, so it takes four. */
export const CONTRADICTED_HISTORY_LIMIT: Rule = { ...RULES['history limit'], agreeing: 4 };

export type ClaimName = keyof typeof RULES;

/** How a claim stands. */
export type Standing = {
  /** Answers that agreed so far. */
  readonly answers: number;
  /** The last answer that counted. An answer that was requested up to then says nothing new. */
  readonly requestedAt: Instant;
  /** An answer to an earlier request does not count. Infinite: not asked again by itself. */
  readonly retryAt: Instant;
};

/** One more answer about a claim; instants are on our own clock. */
export type ClaimAnswer = {
  /** It repeats the claim (`agrees`), makes another one of the same kind (`differs`), or shows that the claim is wrong. */
  readonly says: 'agrees' | 'differs' | 'contradicts';
  readonly sentAt: Instant;
  /** From when on another answer counts. */
  readonly heardAt: Instant;
  /** How long a cache has had the answer; 0: it comes from no cache. */
  readonly ageMs: number;
};

export type Weighed =
  | { readonly kind: 'waiting' | 'believed'; readonly standing: Standing; readonly isCounted: boolean }
  | { readonly kind: 'dropped' };

/**
 * What an answer makes of a claim; `before` null: it is the first one about it. An answer does not count when it was requested before
 * `retryAt`, or when a cache gave an earlier answer once more. A claim that is believed stays believed for every answer that agrees.
 */
export function weighAnswer(before: Standing | null, answer: ClaimAnswer, rule: Rule): Weighed {
  const { says, sentAt, heardAt, ageMs } = answer;
  const stood = before !== null && sentAt - before.requestedAt <= rule.forgetMs ? before : null;
  const isOld = stood !== null && sentAt - ageMs - (ageMs > 0 ? AGE_STEP_MS : 0) <= stood.requestedAt;
  if (says === 'contradicts')
    return isOld ? { kind: 'waiting', standing: stood, isCounted: false } : { kind: 'dropped' };
  const uncounted = (standing: Standing): Weighed => {
    const isBelieved = says === 'agrees' && standing.answers >= rule.agreeing;
    return { kind: isBelieved ? 'believed' : 'waiting', standing, isCounted: false };
  };
  if (stood !== null && sentAt < stood.retryAt) return uncounted(stood);
  const notBefore = afterCaches(sentAt, ageMs);
  if (isOld) return uncounted({ ...stood, requestedAt: heardAt, retryAt: Math.max(heardAt, notBefore) });

  const answers = 1 + (stood !== null && says === 'agrees' ? stood.answers : 0);
  const isBelieved = answers >= rule.agreeing;
  const wait = isBelieved ? rule.believedMs : nextWait(stood, rule);
  const standing = { answers, requestedAt: heardAt, retryAt: Math.max(heardAt + wait, notBefore) };
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

/** Is a list as short as the short list before it? Then the two agree. `rowsBefore` undefined: there was none. */
export function isAsShort(rowsBefore: unknown, rows: number): boolean {
  return typeof rowsBefore === 'number' && Math.abs(rows - rowsBefore) <= rowsBefore * SHORT_LISTS_DIFFER;
}

const SHORT_LISTS_DIFFER = 0.1;

/** When an answer that is so old can be asked for again: what a cache has answered it answers again, until it has forgotten it. */
export function afterCaches(sentAt: Instant, ageMs: number): Instant {
  return ageMs > 0 ? sentAt + Math.max(LONGEST_CACHED_MS - ageMs, LEAST_CACHED_MS) : sentAt;
}
