/** `chandler track`: adds, removes and lists the rules that decide which series the service keeps fresh. */
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { applyRules, readGivesOnlyLastDay, removeRules } from '../../background/actions/track-rules.ts';
import { readBudget } from '../../budget.ts';
import type { Quote } from '../../core/candle.ts';
import { INTERVALS, type Interval, PRICE_INTERVALS } from '../../core/interval.ts';
import { didYouMean } from '../../core/settings/did-you-mean.ts';
import { DEFAULT_PRIORITY, HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../../core/tier.ts';
import { CATALOGUE_FRESH_MS } from '../../ingest/snapshot/coin-list.ts';
import { withIngestion } from '../../ingestion.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { catalogueSeenAt, findCoins } from '../../store/snapshot/coin.ts';
import {
  addTracks,
  countTracked,
  readTracks,
  type SavedRule,
  type TrackedCoins,
} from '../../store/tracking/track-rule.ts';
import { readTierStatus } from '../../views/operations/tiers.ts';
import {
  choice,
  intervalOf,
  list,
  parsePositiveInteger,
  parsePriority,
  parseQuote,
  parseWidth,
  SERIES,
  type SeriesKind,
} from '../input/options.ts';
import { seriesOptions } from '../input/series-options.ts';
import { readCatalogueFor } from '../input/target.ts';
import type { Answer, CommandContext } from '../shell/context.ts';
import { UsageError } from '../shell/exit.ts';
import { coinsOf, parseTargetAge, rulesOf, type TrackOptions } from './track-options.ts';
import { pastAsJson, printPast, queuePast } from './track-past.ts';
import { printAdded, printRemoved, printRules, rulesAsJson, trackAsJson } from './track-report.ts';

type RemoveOptions = Pick<TrackOptions, 'top' | 'all' | 'interval'> & {
  readonly series?: SeriesKind;
  readonly quote?: Quote;
};

const { list: listed, top, all } = DEFAULT_PRIORITY;

export function trackCommand(program: Command, context: CommandContext): void {
  const track = program
    .command('track')
    .description('choose the series that the service keeps fresh: add, remove, list');
  addCommand(track, context);
  removeCommand(track, context);
  const list = track.command('list').description('show the rules, and how fresh their series can be kept');
  context.answer(list, async (app) => {
    const { sql } = app.database;
    const rules = await readTracks(sql);
    const tiers = await readTierStatus(sql, app.clock.now());
    const onlyLastDay = await readGivesOnlyLastDay(app, (await readBudget(app)).plan);
    return { json: () => rulesAsJson(rules, tiers), text: (out) => printRules(out, rules, tiers, onlyLastDay) };
  });
}

function addCommand(track: Command, context: CommandContext): void {
  const add = seriesOptions(
    track
      .command('add')
      .description(
        'keep these series fresh from now on; if the same coins, interval and quote were added before, the new options replace the old ones',
      ),
  )
    .option('--since <T>', 'start of the wanted history: a date, a date-time with its zone, or -30d (default: today)')
    .option(
      '--priority <n>',
      `the highest goes first, ${LOWEST_PRIORITY} to ${HIGHEST_PRIORITY} (default: coins ${listed}, --top ${top}, --all ${all})`,
      parsePriority,
    )
    .option(
      '--target-age <age>',
      'how old the newest data may become: 6h for all intervals, or 1h=3h,24h=2d (default: depends on the interval)',
      list(parseTargetAge),
    )
    // Reports wrong usage before opening the database.
    .hook('preAction', (command) => void rulesOf(command.args, command.opts<TrackOptions>(), context.clock.now()));
  const addRules = async (app: App, coins: string[], options: TrackOptions): Promise<Answer> => {
    const rules = rulesOf(coins, options, app.clock.now());
    await settleCoins(app, context, coins);
    await addTracks(app.database.sql, rules, app.clock.now());
    const report = await applyRules(app);
    const past = await queuePast(app, report.budget, rules, coins, options);
    return {
      json: () => ({ added: rules.length, ...trackAsJson(report), past: pastAsJson(past) }),
      text: (out) => {
        printAdded(out, rules.length, report);
        printPast(out, past);
      },
    };
  };
  context.answer(add, addRules, { schema: 'prepare', changes: true });
}

function removeCommand(track: Command, context: CommandContext): void {
  const command = track
    .command('remove')
    .description('stop keeping these series fresh; stored data stays')
    .argument('[coin...]', 'coins that were added by id')
    .option('--top <n>', 'the rules that were added with the same --top', parsePositiveInteger)
    .option('--all', 'the rules that were added with --all; rules for coins or --top stay')
    .option('--series <what>', 'only candles, or only prices', choice(SERIES))
    .option('--interval <interval>', 'only these intervals', list(parseWidth))
    .option('--quote <quote>', 'only this quote currency', parseQuote)
    // Reports wrong usage before opening the database.
    .hook('preAction', (command) => {
      coinsOf(command.args, command.opts<RemoveOptions>());
      intervalsToRemove(command.opts<RemoveOptions>());
    });
  const removeThem = (app: App, coins: string[], options: RemoveOptions) =>
    remove(app, coinsOf(coins, options), options);
  context.answer(command, removeThem, { schema: 'require', changes: true });
}

async function remove(app: App, coins: readonly TrackedCoins[], { quote, ...options }: RemoveOptions): Promise<Answer> {
  const { sql } = app.database;
  const intervals = intervalsToRemove(options);
  const narrowed = { intervals, quote };
  await requireRules(sql, coins, await readTracks(sql, { coins, ...narrowed }), narrowed);
  const { report, ...removed } = await removeRules(app, { coins, ...narrowed });
  return {
    json: () => ({ ...removed, ...trackAsJson(report) }),
    text: (out) => printRemoved(out, removed, report),
  };
}

/** Undefined means all intervals. @throws UsageError for a width that such series do not have */
function intervalsToRemove({ series, interval }: RemoveOptions): readonly Interval[] | undefined {
  if (interval !== undefined) return interval.map((width) => intervalOf(width, series ?? 'candles'));
  if (series === undefined) return undefined;
  return series === 'prices' ? PRICE_INTERVALS : INTERVALS;
}

/** @throws UsageError when some of the coins have no rule: the command removes all of them or none */
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
  const unmatched = coins.filter((c) => !isFound(c));
  if (unmatched.length === 0) return;
  const rules = await readTracks(sql);
  const chosen = [narrowed.intervals?.join(' '), narrowed.quote].filter((one) => one !== undefined);
  const only = chosen.length === 0 ? '' : ` for ${chosen.join(' ')}`;
  const sentences: string[] = [];
  for (const c of unmatched.slice(0, 5)) {
    if (c.tier === 'list') sentences.push(await whyNot(sql, c.coinId, rules, only));
    else sentences.push(`there is no rule ${c.tier === 'top' ? `--top ${c.top}` : '--all'}${only}`);
  }
  if (unmatched.length > 5) sentences.push(`and ${unmatched.length - 5} more`);
  throw new UsageError(`Nothing was removed: ${sentences.join('; ')}. chandler track list shows the rules.`);
}

async function whyNot(sql: Sql, coinId: string, rules: readonly SavedRule[], only: string): Promise<string> {
  const names = rules.flatMap((r) => (r.coinId === null ? [] : [r.coinId]));
  if (names.includes(coinId)) return `${coinId} has no rule${only}`;
  if ((await countTracked(sql, [coinId])) > 0)
    return `${coinId} is tracked by --top or --all, and a single coin cannot be removed from those`;
  return `no rule names ${coinId}${didYouMean(coinId, new Set(names), 3)}`;
}

/** Reads the list of coins when it is missing or old, or when one of the coins is not in it. */
async function settleCoins(app: App, { signal }: CommandContext, coins: readonly string[]): Promise<void> {
  const { sql } = app.database;
  const named = [...new Set(coins)];
  const seenAt = await catalogueSeenAt(sql);
  const isFresh = seenAt !== null && Math.abs(app.clock.now() - seenAt) < CATALOGUE_FRESH_MS;
  if (isFresh && (await findCoins(sql, named)).length === named.length) return;
  await withIngestion(app, { signal }, ({ session }) =>
    readCatalogueFor({ sql, clock: app.clock, session, log: app.log, signal }, named),
  );
}
