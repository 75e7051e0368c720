/** `chandler track`: what is to be kept fresh. Rules are added, removed and listed; the service does the rest. */
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { readBudget, readFreshnessBudget } from '../../budget.ts';
import { candlesPerRequest } from '../../config.ts';
import { planOf } from '../../contract/plan/plans.ts';
import type { Quote } from '../../core/candle.ts';
import { nearestNames } from '../../core/did-you-mean.ts';
import { INTERVALS, type Interval } from '../../core/interval.ts';
import { DEFAULT_PRIORITY, HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../../core/tier.ts';
import { readWalls } from '../../ingest/limits/learned-limits.ts';
import { CATALOGUE_FRESH_MS } from '../../ingest/snapshot/coin-list.ts';
import { keepTracks } from '../../ingest/tracking/freshness.ts';
import { openIngestion } from '../../ingestion.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { catalogueSeenAt, findCoins } from '../../store/snapshot/coin.ts';
import {
  addTracks,
  countTracked,
  readTracks,
  removeTracks,
  type SavedRule,
  type TrackedCoins,
} from '../../store/tracking/track-rule.ts';
import { readTierStatus } from '../../views/operations/tiers.ts';
import { argument, list, parseInterval, parsePositiveInteger, parsePriority, parseQuote } from '../input/options.ts';
import { readCatalogueFor } from '../input/target.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, type ExitCode, UsageError } from '../shell/exit.ts';
import { coinsOf, parseTargetAge, rulesOf, type TrackOptions } from './track-options.ts';
import { printAdded, printRemoved, printRules, type TrackReport, trackAsJson } from './track-report.ts';

type AddOptions = TrackOptions & { readonly json?: boolean };
type RemoveOptions = Pick<AddOptions, 'top' | 'all' | 'interval' | 'json'> & { readonly quote?: Quote };

const { list: listed, top, all } = DEFAULT_PRIORITY;

export function trackCommand(program: Command, context: CommandContext): void {
  const track = program.command('track').description('say which series are to be kept fresh: add, remove, list');
  addCommand(track, context);
  removeCommand(track, context);
  track
    .command('list')
    .description('show the rules, and how fresh the series they come to can be kept')
    .option('--json', 'print JSON')
    .action(
      context.action(async ({ json }: { readonly json?: boolean }) =>
        context.withApp({ schema: 'require' }, async ({ database: { sql }, clock }) => {
          const rules = await readTracks(sql);
          printRules(context.io.out, rules, await readTierStatus(sql, clock.now()), json ?? false);
          return EXIT.done;
        }),
      ),
    );
}

function addCommand(track: Command, context: CommandContext): void {
  track
    .command('add')
    .description('keep these series fresh from now on; the same coins, interval and quote again get the new terms')
    .argument('[coin...]', 'ids of coins, like btc-bitcoin')
    .option('--top <n>', 'the N best-ranked coins, whichever they are', argument(parsePositiveInteger))
    .option('--all', 'every active coin')
    .option(
      '--interval <interval>',
      `widths of candles, several with commas: ${INTERVALS.join(', ')} (default: 24h)`,
      list(parseInterval),
    )
    .option('--quote <quote>', 'currency of the prices', argument(parseQuote), 'usd')
    .option('--since <T>', 'history is wanted from here: a date, a date-time with zone, or -30d (default: today)')
    .option(
      '--priority <n>',
      `higher goes first, ${LOWEST_PRIORITY} to ${HIGHEST_PRIORITY} (default: coins ${listed}, --top ${top}, --all ${all})`,
      argument(parsePriority),
    )
    .option(
      '--target-age <age>',
      'how old the newest data may become: 6h for all intervals, or 1h=3h,24h=2d (default: by interval, see the README)',
      list(parseTargetAge),
    )
    .option('--json', 'print JSON')
    .action(
      context.action(async (coins: string[], options: AddOptions) => {
        const rules = rulesOf(coins, options, context.clock.now());
        return context.withApp({ schema: 'prepare' }, async (app) => {
          await settleCoins(app, context, coins);
          await addTracks(app.database.sql, rules, app.clock.now());
          const report = await applyAndPlan(app);
          if (options.json) trackAsJson(context.io.out, { added: rules.length, ...report });
          else printAdded(context.io.out, rules.length, report);
          return EXIT.done;
        });
      }),
    );
}

function removeCommand(track: Command, context: CommandContext): void {
  track
    .command('remove')
    .description('stop keeping these series fresh; what is stored stays')
    .argument('[coin...]', 'coins that were added by their ids')
    .option('--top <n>', 'the rules that were added with this --top', argument(parsePositiveInteger))
    .option('--all', 'the rules that were added with --all (not those of coins and --top)')
    .option('--interval <interval>', 'only these widths of candles', list(parseInterval))
    .option('--quote <quote>', 'only this currency', argument(parseQuote))
    .option('--json', 'print JSON')
    .action(
      context.action(async (coins: string[], options: RemoveOptions) => {
        const chosen = coinsOf(coins, options);
        return context.withApp({ schema: 'require' }, (app) => remove(app, context, chosen, options));
      }),
    );
}

async function remove(
  app: App,
  { io }: CommandContext,
  coins: readonly TrackedCoins[],
  { interval: intervals, quote, json }: RemoveOptions,
): Promise<ExitCode> {
  const { sql } = app.database;
  const narrowed = { intervals: intervals as readonly Interval[] | undefined, quote };
  await requireRules(sql, coins, await readTracks(sql, { coins, ...narrowed }), narrowed);
  const removed = await removeTracks(sql, { coins, ...narrowed });
  const report = await applyAndPlan(app);
  const named = coins.flatMap((c) => (c.tier === 'list' ? [c.coinId] : []));
  const still = named.length === 0 ? 0 : await countTracked(sql, named);
  if (json) trackAsJson(io.out, { removed: removed.length, stillTracked: still, ...report });
  else printRemoved(io.out, removed.length, still, report);
  return EXIT.done;
}

/** @throws UsageError for coins that no rule is about: all or nothing is removed. */
async function requireRules(
  sql: Sql,
  coins: readonly TrackedCoins[],
  found: readonly SavedRule[],
  narrowed: { readonly intervals: readonly Interval[] | undefined; readonly quote: Quote | undefined },
): Promise<void> {
  const isFound = (c: TrackedCoins) =>
    found.some(
      (r) => r.tier === c.tier && (c.tier !== 'list' || r.coinId === c.coinId) && (c.tier !== 'top' || r.top === c.top),
    );
  const lacking = coins.filter((c) => !isFound(c));
  if (lacking.length === 0) return;
  const rules = await readTracks(sql);
  const only = [...(narrowed.intervals ?? []), ...(narrowed.quote === undefined ? [] : [narrowed.quote])].join(' ');
  const sentences: string[] = [];
  for (const c of lacking.slice(0, 5)) {
    if (c.tier === 'list') sentences.push(await whyNot(sql, c.coinId, rules));
    else sentences.push(`there is no rule ${c.tier === 'top' ? `--top ${c.top}` : '--all'}`);
  }
  if (lacking.length > 5) sentences.push(`and ${lacking.length - 5} more`);
  throw new UsageError(
    `Nothing was removed: ${sentences.join('; ')}${only === '' ? '' : ` (of ${only})`}. chandler track list shows the rules.`,
  );
}

async function whyNot(sql: Sql, coinId: string, rules: readonly SavedRule[]): Promise<string> {
  const names = rules.flatMap((r) => (r.coinId === null ? [] : [r.coinId]));
  if (names.includes(coinId)) return `no such rule names ${coinId}`;
  if ((await countTracked(sql, [coinId])) > 0)
    return `${coinId} is tracked by --top or --all, of which a single coin cannot be left out`;
  const near = nearestNames(coinId, new Set(names), 3);
  return `no rule names ${coinId}${near.length === 0 ? '' : ` (did you mean ${near.join(' or ')}?)`}`;
}

/** The list of coins is asked for when there is none, when it is old, or when it does not hold a coin. */
async function settleCoins(app: App, { signal }: CommandContext, coins: readonly string[]): Promise<void> {
  const { sql } = app.database;
  const named = [...new Set(coins)];
  const seenAt = await catalogueSeenAt(sql);
  const isFresh = seenAt !== null && app.clock.now() - seenAt < CATALOGUE_FRESH_MS;
  if (isFresh && (await findCoins(sql, named)).length === named.length) return;
  const ingestion = await openIngestion(app, { signal });
  try {
    await readCatalogueFor({ sql, clock: app.clock, session: ingestion.session, log: app.log, signal }, named);
  } finally {
    await ingestion.close();
  }
}

async function applyAndPlan(app: App): Promise<TrackReport> {
  const { sql } = app.database;
  const { clock, config } = app;
  const budget = await readBudget(app);
  const { planned: perDay } = await readFreshnessBudget(budget);
  const { applied, plan } = await keepTracks({
    sql,
    now: clock.now(),
    requestsPerDay: perDay,
    candlesPerRequest: candlesPerRequest(budget.plan, config),
    walls: await readWalls(sql, clock, planOf(budget.plan)),
    keep: config.keep.candles,
  });
  return { applied, planName: budget.plan, plan, perDay, tiers: await readTierStatus(sql, clock.now()) };
}
