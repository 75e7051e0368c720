/** The story of one slot below the chart: who wanted it, the requests and answers, and what comes next. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import { formatInstant, formatSeries } from '../../core/format.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { slotAfter, slotOf } from '../../views/chart/bar-width.ts';
import { type ChartOf, gridOf, ownInterval } from '../../views/chart/bars.ts';
import type { SeriesFacts } from '../../views/chart/coin-facts.ts';
import { findStorySeries } from '../../views/chart/story-series.ts';
import { readStory, type Story } from '../../views/operations/story.ts';
import { coinUrl, describeChart, iso } from './coin-address.ts';

type SlotStory = {
  readonly story: Story;
  /** The stored series that the story is about. */
  readonly series: SeriesFacts;
  /** Set if the chart's bar is made of several candles of that series. */
  readonly madeBar: { readonly from: Instant; readonly to: Instant } | null;
};

/** The story in the series that the bar or the hole belongs to. For a bar made of finer candles, that of the first one. Null when none is stored. */
export async function readSlotStory(
  sql: Sql,
  {
    coinId,
    chart,
    sources,
    at,
    now,
  }: {
    readonly coinId: string;
    readonly chart: ChartOf;
    readonly sources: readonly SeriesFacts[];
    readonly at: Instant;
    readonly now: Instant;
  },
): Promise<SlotStory | null> {
  const from = slotOf(gridOf(chart), at);
  const to = slotAfter(gridOf(chart), from);
  const series = await findStorySeries(sql, sources, ownInterval(chart), { from, to });
  if (series === null) return null;
  const isOwn = series.interval === ownInterval(chart);
  const question = { coinId, interval: series.interval, quote: series.quote, at: isOwn ? at : from };
  const story = await readStory(sql, question, now);
  if (story === null) return null;
  return { story, series, madeBar: isOwn ? null : { from, to } };
}

export const StoryList: FC<{ readonly coinId: string; readonly chart: ChartOf; readonly told: SlotStory }> = ({
  coinId,
  chart,
  told: { story, series, madeBar },
}) => (
  <div>
    <h2>
      History of the slot {formatInstant(story.from)}, {formatSeries(series)}
    </h2>
    {madeBar !== null && (
      <p>
        The bar of {formatInstant(madeBar.from)} is aggregated from {series.interval} candles; Chandler did not request{' '}
        {describeChart(chart)}. Below is the history of the first of these candles.{' '}
        <a href={partsPath(coinId, series, madeBar)}>Show all of them</a>
      </p>
    )}
    <ol class="story">
      {story.events.map(({ at, event, detail }) => (
        <li>
          <time datetime={new Date(at).toISOString()} class="nowrap">
            {new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z
          </time>{' '}
          <strong>{event}</strong> {detail}
        </li>
      ))}
    </ol>
    <p class="soft">
      On the command line:{' '}
      <code>
        chandler explain {coinId} {series.interval} {iso(story.from)}
        {series.quote !== 'usd' && ` --quote ${series.quote}`}
      </code>
    </p>
  </div>
);

type Slot = { readonly from: Instant; readonly to: Instant };

function partsPath(coinId: string, { interval, quote }: SeriesFacts, { from, to }: Slot): string {
  return `${coinUrl(coinId)}?${new URLSearchParams({ interval, quote, from: iso(from)!, to: iso(to)! })}`;
}
