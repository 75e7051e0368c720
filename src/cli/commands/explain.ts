/** `chandler explain`: the story of one slot: who wanted it, which requests and answers there were, which evidence it has, and what comes next. */

import type { Command } from 'commander';
import type { Clock, Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { formatDay, formatInstant, formatSeries, toIso, withIso } from '../../core/format.ts';
import { INTERVALS, type Interval, isCandleInterval } from '../../core/interval.ts';
import { didYouMeanOr } from '../../core/settings/did-you-mean.ts';
import { isRolledUp } from '../../store/candle/rollup.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { catalogueSeenAt, findCoins, nearestCoinIds } from '../../store/snapshot/coin.ts';
import { presentIdsOf } from '../../store/upkeep/rename.ts';
import { readStory, type Story, type StoryQuestion } from '../../views/operations/story.ts';
import { parseInterval, parseQuote } from '../input/options.ts';
import { checkCoins } from '../input/series-options.ts';
import { parseTime } from '../input/time.ts';
import { printable } from '../output/table.ts';
import type { CommandContext } from '../shell/context.ts';
import { UsageError } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';

export function explainCommand(program: Command, context: CommandContext): void {
  const explain = program
    .command('explain')
    .description(
      'show the history of one candle slot: what wants it, its requests and answers, the evidence for it, what comes next',
    )
    .argument('<coin>', 'a coin id, like btc-bitcoin', parseCoin)
    .argument('<interval>', `${INTERVALS.join(', ')}; of prices prices-1d and so on`, parseInterval)
    .argument('<time>', 'any instant in the slot: a date (UTC midnight) or a date-time with its zone', (text) =>
      parsePast(text, context.clock),
    )
    .option('--quote <quote>', 'quote currency of the prices', parseQuote, 'usd');
  context.answer(
    explain,
    async (app, coinId: string, interval: Interval, at: Instant, { quote }: { readonly quote: Quote }) => {
      const question = { coinId, interval, quote, at };
      const story = await readStory(app.database.sql, question, app.clock.now());
      if (story === null) throw await whyNone(app.database.sql, question);
      return { json: () => asJson(question, story), text: (out) => printStory(out, question, story) };
    },
  );
}

function parseCoin(text: string): string {
  checkCoins([text], {});
  return text;
}

/** @throws UsageError for an invalid time, or one in the future */
function parsePast(text: string, clock: Clock): Instant {
  const now = clock.now();
  const at = parseTime(text, now);
  if (at <= now) return at;
  throw new UsageError(`It lies in the future (now is ${formatInstant(now)}): no such slot has opened.`);
}

function asJson({ coinId, interval, quote }: StoryQuestion, { from, to, events }: Story) {
  return {
    coinId,
    interval,
    quote,
    slot: { from: toIso(from), to: toIso(to) },
    events: events.map((event) => withIso(event, 'at')),
  };
}

function printStory(out: Output, { coinId, interval, quote, at }: StoryQuestion, { from, to, events }: Story): void {
  if (at !== from) {
    out.write(`${formatInstant(at)} is inside the ${interval} slot that opens at ${formatInstant(from)}.\n`);
  }
  out.write(`${coinId} ${formatSeries({ interval, quote })}, from ${formatDay(from)} to ${formatDay(to)} (UTC):\n\n`);
  const width = Math.max(...events.map(({ event }) => event.length));
  for (const { at: when, event, detail } of events) {
    out.write(`${withSeconds(when)}  ${event.padEnd(width)}  ${printable(detail)}\n`);
  }
}

/** Always with seconds, so that the lines are aligned. */
function withSeconds(at: Instant): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

/** For a series that does not exist: which series the coin has, and how to get this one. Sends no request. */
async function whyNone(sql: Sql, { coinId, interval, quote, at }: StoryQuestion): Promise<UsageError> {
  const presentId = (await presentIdsOf(sql, [coinId])).get(coinId);
  if (presentId !== undefined) return new UsageError(`the coin ${coinId} has the id ${presentId} now`);
  if ((await findCoins(sql, [coinId])).length === 0) return unknownCoin(sql, coinId);
  const others = await sql<{ interval: Interval; quote: Quote }[]>`
    select interval, quote from market.series where coin_id = ${coinId} order by interval desc, quote desc`;
  const there =
    others.length === 0
      ? 'it has no series at all'
      : `it has ${others.map((series) => formatSeries(series)).join(', ')}`;
  // The coarsest of these makes the candle, if it covers the slot.
  const fine = others.find(
    (one) =>
      one.quote === quote &&
      isCandleInterval(one.interval) &&
      isCandleInterval(interval) &&
      isRolledUp(one.interval, interval),
  );
  const inOther = quote === 'usd' ? '' : ` --quote ${quote}`;
  const made =
    fine === undefined
      ? ''
      : ` market.candles makes its ${interval} candles of those of ${fine.interval}: chandler explain ${coinId} ${fine.interval} ${toIso(at)}${inOther}.`;
  return new UsageError(
    `there is no series ${coinId} ${formatSeries({ interval, quote })}; ${there}.${made} What it costs to get it: ` +
      `chandler plan ${coinId} --interval ${interval}${inOther} --start ${new Date(at).toISOString().slice(0, 10)}`,
  );
}

async function unknownCoin(sql: Sql, coinId: string): Promise<UsageError> {
  if ((await catalogueSeenAt(sql)) === null) {
    return new UsageError(
      `the list of coins was not read yet, so ${coinId} is not known; begin with: chandler plan ${coinId} --start -30d`,
    );
  }
  const meant = didYouMeanOr(await nearestCoinIds(sql, coinId, 3), 'a coin is named by its id, like btc-bitcoin');
  return new UsageError(`there is no coin ${coinId}; ${meant}`);
}
