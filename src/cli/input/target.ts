/** What a plan or a backfill is about, from the command line: coins that exist, a span that makes sense. */
import type { Clock, Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { ceilToGrid, type Interval } from '../../core/interval.ts';
import { type Keep, keptPart } from '../../core/retention-settings.ts';
import type { Span } from '../../core/span.ts';
import type { BackfillTarget } from '../../ingest/backfill/plan.ts';
import type { Session } from '../../ingest/session.ts';
import { type CatalogueRefresh, refreshCatalogue } from '../../ingest/snapshot/coin-list.ts';
import type { Log } from '../../log.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { activeCoins, catalogueSeenAt, findCoins, nearestCoinIds, topCoins } from '../../store/snapshot/coin.ts';
import { formatDay, formatDuration, formatInstant } from '../output/format.ts';
import { formatMoment, waitingFor } from '../output/wait-reasons.ts';
import { StoppedEarly, UsageError } from '../shell/exit.ts';
import { parseTime } from './time.ts';

export type TargetOptions = {
  readonly start: string;
  readonly end?: string;
  readonly interval: Interval;
  readonly quote: Quote;
  readonly top?: number;
  readonly all?: boolean;
};

/** As people type them: an interval may be several, each of which is a target of its own. */
export type TargetsOptions = Omit<TargetOptions, 'interval'> & { readonly interval?: readonly Interval[] };

/** The same options for each of the intervals, in the order in which they were given. */
export function eachInterval<T extends TargetsOptions>(
  options: T,
): (Omit<T, 'interval'> & { readonly interval: Interval })[] {
  const intervals = [...new Set(options.interval ?? (['24h'] as const))];
  return intervals.map((interval) => ({ ...options, interval }));
}

export type ResolvedTarget = BackfillTarget & {
  /** Requests that reading the list of coins took; 0 when it was known. */
  readonly catalogueRequests: number;
  /** What was asked for begins earlier, but candles are kept for so long only; null: all of it is kept. */
  readonly keptMs: number | null;
};

/** @throws UsageError for a time without sense; pure, so it is checked before anything is opened. */
export function parseSpan(
  { start, end, interval }: Partial<Pick<TargetOptions, 'start'>> & Pick<TargetOptions, 'end' | 'interval'>,
  now: Instant,
) {
  // Not left to the command line's parser: it would say so before it says that --strat is no option.
  if (start === undefined) throw new UsageError('From when? Give --start, like --start 2024-01-01 or --start -30d.');
  const from = timeOption('--start', start, now);
  const until = end === undefined ? now : timeOption('--end', end, now);
  if (from === now) {
    throw new UsageError(`--start ${start} is now, and no candle has opened since; choose an earlier one, like -30d.`);
  }
  if (from > now)
    throw new UsageError(`--start ${start} lies in the future (it is ${formatInstant(now)}); candles are history.`);
  if (until <= from) {
    throw new UsageError(
      `--end ${end ?? 'now'} is not after --start ${start}; --end is exclusive, so the shortest span of days is one day apart.`,
    );
  }
  const span = { from: ceilToGrid(from, interval), to: ceilToGrid(Math.min(until, now), interval) };
  if (span.from >= span.to) {
    throw new UsageError(
      `No ${interval} candle opens between ${formatDay(from)} and ${formatDay(until)}; choose an earlier --start, or a narrower --interval.`,
    );
  }
  return span;
}

/** @throws UsageError that names the option. */
export function timeOption(name: string, text: string, now: Instant): Instant {
  try {
    return parseTime(text, now);
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`${name} '${text}' is no time. ${error.message}`);
    throw error;
  }
}

/** Checked before anything is opened, too. */
export function checkCoinChoice(coins: readonly string[], { top, all }: Pick<TargetOptions, 'top' | 'all'>): void {
  if (top !== undefined && all) throw new UsageError('--top and --all exclude each other; give one of them.');
  if (coins.some((id) => id.trim() === '')) {
    throw new UsageError('An empty id was given as a coin; ids look like btc-bitcoin.');
  }
  if (coins.length > 0 && all) throw new UsageError('--all already means every coin; give coins or --all, not both.');
  if (coins.length === 0 && top === undefined && !all) {
    throw new UsageError('Which coins? Give ids like btc-bitcoin, or --top 100, or --all.');
  }
}

/** The coins of the target, each once, in the order they are to be filled. @throws UsageError for a coin nobody knows. */
export async function resolveTarget(
  deps: CatalogueDeps & { readonly keep: Keep['candles'] },
  coins: readonly string[],
  options: TargetOptions,
): Promise<ResolvedTarget> {
  const { sql, clock } = deps;
  const asked = parseSpan(options, clock.now());
  const span = keepable(asked, options.interval, deps.keep, clock.now());
  const named = [...new Set(coins)];
  const catalogueRequests = await readCatalogueFor(deps, named);
  const chosen = options.all
    ? await activeCoins(sql)
    : options.top === undefined
      ? []
      : await topCoins(sql, options.top);
  const coinIds = [...new Set([...named, ...chosen.map((coin) => coin.id)])];
  const keptMs = span.from > asked.from ? deps.keep[options.interval] : null;
  return { coinIds, quote: options.quote, interval: options.interval, span, catalogueRequests, keptMs };
}

/** What would be removed for its age at once is not paid for. @throws UsageError when nothing else is asked for. */
function keepable(asked: Span, interval: Interval, keep: Keep['candles'], now: Instant): Span {
  const span = keptPart(asked, interval, keep, now);
  if (span.from < span.to) return span;
  throw new UsageError(
    `CHANDLER_KEEP_CANDLES keeps ${interval} candles for ${formatDuration(keep[interval]!)}, and all that is asked for is older: it would be removed again. Choose a later --end, or keep more.`,
  );
}

type CatalogueDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly session: Session;
  readonly log: Log;
  readonly signal?: AbortSignal;
};

/** Reads the list of coins when it is old. Resolves to the requests it took. @throws UsageError for a coin nobody knows. */
export async function readCatalogueFor(deps: CatalogueDeps, named: readonly string[]): Promise<number> {
  const { sql } = deps;
  let requests = await readCatalogue(deps, undefined);
  let known = await findCoins(sql, named);
  if (known.length < named.length && requests === 0) {
    // A new coin may have been listed since the catalogue was read.
    requests += await readCatalogue(deps, STALE_FOR_UNKNOWN_MS);
    known = await findCoins(sql, named);
  }
  await requireCoins(sql, named, new Set(known.map((coin) => coin.id)));
  return requests;
}

const STALE_FOR_UNKNOWN_MS = 3_600_000;

async function readCatalogue(
  { sql, clock, session, log, signal }: CatalogueDeps,
  maxAgeMs: number | undefined,
): Promise<number> {
  const onTrouble = (problem: string, attempt: number) => log.warn(`${problem}; asked again (attempt ${attempt + 1})`);
  const refresh: CatalogueRefresh = await refreshCatalogue(
    { sendRequest: session.sendRequest, sql, clock, signal, onTrouble },
    maxAgeMs,
  );
  if (refresh.kind === 'read') return refresh.requests;
  // An old list is better than none while the budget says no.
  if (refresh.kind === 'held' && (await catalogueSeenAt(sql)) === null) {
    throw new StoppedEarly(
      `the list of coins is needed first, and cannot be asked for: ${waitingFor(refresh.reason)} until ${formatMoment(refresh.until, clock.now())}; give the same command again then`,
    );
  }
  return 0;
}

const ID_FORM =
  'the symbol and the name, like btc-bitcoin: as in the address of the coin\'s page, or from chandler sql "select id, name from market.coin"';

async function requireCoins(sql: Sql, named: readonly string[], known: ReadonlySet<string>): Promise<void> {
  const unknown = named.filter((id) => !known.has(id));
  if (unknown.length === 0) return;
  const sentences: string[] = [];
  for (const id of unknown.slice(0, 5)) {
    const near = await nearestCoinIds(sql, id, 3);
    sentences.push(
      near.length === 0
        ? `${id} is no coin of the upstream; its ids are ${ID_FORM}`
        : `${id} is no coin of the upstream; did you mean ${near.join(' or ')}?`,
    );
  }
  if (unknown.length > 5) sentences.push(`and ${unknown.length - 5} more`);
  throw new UsageError(sentences.join('\n'));
}
