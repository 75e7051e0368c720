/** The target of a plan or a backfill, from the command line: existing coins and a valid span. */

import { formatMoment, waitingFor } from '../../background/operator/wait-reasons.ts';
import type { Clock, Instant } from '../../clock.ts';
import { formatDuration } from '../../core/format.ts';
import type { Interval } from '../../core/interval.ts';
import { didYouMeanOr } from '../../core/settings/did-you-mean.ts';
import { keptMs as keptMsOf, keptPart, type Retention } from '../../core/settings/retention-settings.ts';
import type { Span } from '../../core/span.ts';
import type { BackfillTarget } from '../../ingest/backfill/plan.ts';
import type { Session } from '../../ingest/session.ts';
import { type CatalogueRefresh, refreshCatalogue } from '../../ingest/snapshot/coin-list.ts';
import type { Log } from '../../log.ts';
import type { Sql } from '../../store/connection/connect.ts';
import {
  activeCoins,
  catalogueSeenAt,
  coinsEverInTop,
  findCoins,
  inactiveCoins,
  nearestCoinIds,
  topCoins,
} from '../../store/snapshot/coin.ts';
import { presentIdsOf } from '../../store/upkeep/rename.ts';
import { StoppedEarly, UsageError } from '../shell/exit.ts';
import { parseSpan, type TargetOptions } from './series-options.ts';

export type ResolvedTarget = BackfillTarget & {
  /** Requests sent to read the list of coins. 0 when it was fresh. */
  readonly catalogueRequests: number;
  /** How long candles are kept, if the target leaves out older ones. Null when it leaves out nothing. */
  readonly keptMs: number | null;
  /** Inactive coins that the target leaves out, if a rule chose the coins. */
  readonly leftOut: readonly string[];
  /** Coins of the target that are active. */
  readonly activeIds: readonly string[];
};

/** The coins of the target, each once, in the order in which the backfill fills them. @throws UsageError for an unknown coin */
export async function resolveTarget(
  deps: CatalogueDeps & { readonly keep: Retention['candles'] },
  coins: readonly string[],
  options: TargetOptions,
  interval: Interval,
): Promise<ResolvedTarget> {
  const { sql, clock } = deps;
  const requested = parseSpan(options, interval, clock.now());
  const span = withoutExpired(requested, interval, deps.keep, clock.now());
  const named = [...new Set(coins)];
  const catalogueRequests = await readCatalogueFor(deps, named);
  await refuseRenamed(sql, named);
  const { all, top, everTop, inactive } = options;
  const gone = await inactiveCoins(sql);
  const chosen = [
    ...(all ? await activeCoins(sql) : []),
    ...(top === undefined ? [] : await topCoins(sql, top)),
    ...(everTop === undefined ? [] : await coinsEverInTop(sql, everTop)),
    ...(inactive ? gone : []),
  ];
  const coinIds = [...new Set([...named, ...chosen.map((coin) => coin.id)])];
  const isChosen = new Set(coinIds);
  // A list of named coins leaves out nothing.
  const leftOut =
    all || top !== undefined || everTop !== undefined ? gone.map(({ id }) => id).filter((id) => !isChosen.has(id)) : [];
  const keptMs = span.from > requested.from ? keptMsOf(interval, deps.keep) : null;
  const isGone = new Set(gone.map(({ id }) => id));
  const activeIds = coinIds.filter((id) => !isGone.has(id));
  return { coinIds, quote: options.quote, interval, span, catalogueRequests, keptMs, leftOut, activeIds };
}

/** Leaves out candles that retention would remove at once. @throws UsageError when nothing is left */
function withoutExpired(requested: Span, interval: Interval, keep: Retention['candles'], now: Instant): Span {
  const span = keptPart(requested, interval, keep, now);
  if (span.from < span.to) return span;
  throw new UsageError(
    `CHANDLER_KEEP_CANDLES keeps ${interval} candles for ${formatDuration(keptMsOf(interval, keep)!)}, and the whole span is older. Choose a later --end, or keep candles for longer.`,
  );
}

type CatalogueDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly session: Session;
  readonly log: Log;
  readonly signal?: AbortSignal;
};

/** Reads the list of coins when it is old. Resolves to the number of requests. @throws UsageError for an unknown coin */
export async function readCatalogueFor(deps: CatalogueDeps, named: readonly string[]): Promise<number> {
  const { sql } = deps;
  let requests = await readCatalogue(deps, undefined);
  let known = await findCoins(sql, named);
  if (known.length < named.length && requests === 0) {
    // The coin may be newer than the list.
    requests += await readCatalogue(deps, FRESH_FOR_UNKNOWN_MS);
    known = await findCoins(sql, named);
  }
  await requireCoins(sql, named, new Set(known.map((coin) => coin.id)));
  return requests;
}

const FRESH_FOR_UNKNOWN_MS = 3_600_000;

async function readCatalogue(
  { sql, clock, session, log, signal }: CatalogueDeps,
  maxAgeMs: number | undefined,
): Promise<number> {
  const onFailure = (problem: string, attempt: number) => log.warn(`${problem}; retrying (attempt ${attempt + 1})`);
  const refresh: CatalogueRefresh = await refreshCatalogue(
    { sendRequest: session.sendRequest, sql, clock, signal, onFailure },
    maxAgeMs,
  );
  if (refresh.kind === 'read') return refresh.requests;
  // While the quota allows no request, an old list is better than none.
  if (refresh.kind === 'held' && (await catalogueSeenAt(sql)) === null) {
    throw new StoppedEarly(
      `the list of coins is needed first, but ${waitingFor(refresh.reason)} until ${formatMoment(refresh.until, clock.now())}; run the same command again then`,
    );
  }
  return 0;
}

const ID_FORM = 'made of symbol and name, like btc-bitcoin; see chandler sql "select id, name from market.coin"';

/** The upstream answers an old id like a coin without any data, and the answer is no evidence: such a request brings nothing. */
async function refuseRenamed(sql: Sql, named: readonly string[]): Promise<void> {
  const presentIds = await presentIdsOf(sql, named);
  if (presentIds.size > 0)
    throw new UsageError([...presentIds].map(([old, now]) => `the coin ${old} has the id ${now} now`).join('\n'));
}

async function requireCoins(sql: Sql, named: readonly string[], known: ReadonlySet<string>): Promise<void> {
  const unknown = named.filter((id) => !known.has(id));
  if (unknown.length === 0) return;
  await refuseRenamed(sql, unknown);
  const sentences: string[] = [];
  for (const id of unknown.slice(0, 5)) {
    const hint = didYouMeanOr(await nearestCoinIds(sql, id, 3), `ids are ${ID_FORM}`);
    sentences.push(`the upstream has no coin ${id}; ${hint}`);
  }
  if (unknown.length > 5) sentences.push(`and ${unknown.length - 5} more`);
  throw new UsageError(sentences.join('\n'));
}
