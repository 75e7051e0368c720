/** A coin: its candles or prices with the holes between them, the story of a slot, and its stored series. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import { formatCount, formatCounted, formatDay, formatInstant, formatSeries } from '../../core/format.ts';
import { isPriceInterval } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { slotOf } from '../../views/chart/bar-width.ts';
import { type Bars, type Extent, extentOf, gridOf, readBars, slotsIn, sourcesOf } from '../../views/chart/bars.ts';
import { type CoinFacts, readCoinFacts, readSeriesFacts, type SeriesFacts } from '../../views/chart/coin-facts.ts';
import type { Html } from '../html.ts';
import { messagePage } from '../parts/message-page.tsx';
import type { ScreenInput, ScreenView } from '../screen.ts';
import { BarTable, rowsOf } from './bar-table.tsx';
import { newestPart } from './candles-source.ts';
import { ChartControls, ChartFigure } from './chart-figure.tsx';
import {
  type CoinAddress,
  canBeId,
  coinPath,
  describeChart,
  iso,
  mostSlotsOf,
  nameOf,
  readCoinAddress,
  windowOf,
} from './coin-address.ts';
import { MoreOfCoin, SeriesTable } from './series-table.tsx';
import { readSlotStory, StoryList } from './slot-story.tsx';

/** The table shows so many of the newest slots in the span. */
const TABLE_ROWS = 60;

export async function coinScreen({ deps: { sql }, url, id, now }: ScreenInput): Promise<ScreenView> {
  const coin = canBeId(id) ? await readCoinFacts(sql, id) : null;
  if (coin === null) return noCoin(id);
  const series = await readSeriesFacts(sql, coin.id);
  const address = readCoinAddress(url.searchParams, series, now);
  const sources = sourcesOf(series, address.chart);
  const extent = extentOf(sources, address.chart, { firstDataAt: coin.firstDataAt, now });
  const shown = extent === null ? null : await readShown(sql, { coin, address, sources, extent, now });
  const story = address.at === null ? '' : await storyOf(sql, { coin, address, sources, at: address.at, now });
  const query = url.searchParams.get('q');
  const body = (
    <div>
      <h1>
        {coin.name} ({coin.symbol})
      </h1>
      {coin.id !== id && <Renamed coin={coin} oldId={id} />}
      <Facts coin={coin} />
      {query !== null && query !== '' && (
        <p>
          <a href={`/ui/search?${new URLSearchParams({ q: query, all: 'true' })}`}>
            All coins that match {JSON.stringify(query)}
          </a>
        </p>
      )}
      <ChartControls coinId={coin.id} address={address} series={series} />
      {shown === null ? (
        <NothingToShow address={address} series={series} />
      ) : (
        <Shown {...{ coin, address, series, shown, story }} />
      )}
      <section id="series" data-live aria-labelledby="series-title">
        <h2 id="series-title">Stored series</h2>
        <SeriesTable coinId={coin.id} series={series} now={now} />
      </section>
      <section id="more" aria-labelledby="more-title">
        <h2 id="more-title">Add a series</h2>
        <MoreOfCoin coinId={coin.id} interval={nameOf(address.chart)} quote={address.chart.quote} now={now} />
      </section>
    </div>
  );
  return { title: `${coin.name} (${coin.symbol})`, body, scripts: shown === null ? [] : ['coin'] };
}

function noCoin(id: string): ScreenView {
  const hint = (
    <>
      No coin has or had the id <code>{id}</code>.{' '}
      <a href={`/ui/search?${new URLSearchParams({ q: id })}`}>Search for it</a>
    </>
  );
  return messagePage('There is no such coin', hint, 404);
}

const Renamed: FC<{ readonly coin: CoinFacts; readonly oldId: string }> = ({ coin, oldId }) => (
  <p class="notice">
    The upstream changed the id of this coin{coin.renamedAt !== null && `, noticed ${formatInstant(coin.renamedAt)}`}:{' '}
    <code>{oldId}</code> is now <code>{coin.id}</code>. Rows of the old id are stored under the new id.
  </p>
);

const Facts: FC<{ readonly coin: CoinFacts }> = ({ coin: { id, rank, isActive, firstDataAt, lastSeenAt } }) => (
  <div class="facts">
    <p>
      <code>{id}</code>
    </p>
    <p>{rank > 0 ? `rank ${formatCount(rank)}` : 'no rank'}</p>
    <p>{isActive ? 'active' : <span class="warn">no longer active</span>}</p>
    <p>
      {firstDataAt === null ? 'start of the upstream data not known' : `upstream data since ${formatDay(firstDataAt)}`}
    </p>
    <p>last listed {formatInstant(lastSeenAt)}</p>
  </div>
);

type ShownPart = {
  /** Whether the window ends with the newest slot. */
  readonly isNewest: boolean;
  readonly window: Extent;
  readonly slots: number;
  /** Whether there are slots that the table does not show. */
  readonly hasMore: boolean;
  readonly bars: Bars;
};

type Question = {
  readonly coin: CoinFacts;
  readonly address: CoinAddress;
  readonly sources: readonly SeriesFacts[];
  readonly now: Instant;
};

async function readShown(sql: Sql, question: Question & { readonly extent: Extent }): Promise<ShownPart> {
  const { coin, address, sources, extent, now } = question;
  const { chart, showsDrawdown } = address;
  const window = windowOf(address, extent);
  const most = mostSlotsOf(sources, chart);
  const loaded = newestPart(chart, window, most);
  // The drawdown is measured from the highest close of all bars in the chart.
  const read = showsDrawdown ? loaded : newestPart(chart, window, Math.min(most, TABLE_ROWS));
  const { id: coinId, firstDataAt } = coin;
  const bars = await readBars(sql, { coinId, chart, sources, ...read, firstDataAt, now });
  const slots = slotsIn(chart, window);
  return { isNewest: window.to === extent.to, window, slots, hasMore: slots > Math.min(most, TABLE_ROWS), bars };
}

const Shown: FC<{
  readonly coin: CoinFacts;
  readonly address: CoinAddress;
  readonly series: readonly SeriesFacts[];
  readonly shown: ShownPart;
  readonly story: Html | '';
}> = ({ coin, address, series, shown: { isNewest, window, slots, hasMore, bars }, story }) => {
  const rows = rowsOf(bars).slice(0, TABLE_ROWS);
  const { chart } = address;
  const of = `${describeChart(chart)} in ${chart.quote}`;
  const storyAt = (at: Instant) => `${coinPath(coin.id, address, { at: iso(at) })}#story`;
  return (
    <>
      <ChartFigure coinId={coin.id} address={address} series={series} window={window} isNewest={isNewest} />
      {story}
      <section id="bars" data-live aria-labelledby="bars-title">
        <h2 id="bars-title">As a table</h2>
        <BarTable
          chart={chart}
          rows={rows}
          showsDrawdown={address.showsDrawdown}
          storyAt={storyAt}
          caption={`${of}, ${formatCounted(slots, 'slot')} from ${formatDay(window.from)} to ${formatDay(window.to)}; newest first`}
        />
        {hasMore && (
          <p>
            <a
              href={coinPath(coin.id, {
                ...address,
                from: null,
                to: bars.bars.length + bars.holes.length === 0 ? window.from : oldestOf(rows, window),
              })}
            >
              Earlier bars
            </a>
          </p>
        )}
      </section>
    </>
  );
};

function oldestOf(rows: readonly { readonly at: Instant }[], { from }: Extent): Instant {
  return rows.at(-1)?.at ?? from;
}

const NothingToShow: FC<{ readonly address: CoinAddress; readonly series: readonly SeriesFacts[] }> = ({
  address: { chart },
  series,
}) => {
  const candles = series.filter(({ interval }) => !isPriceInterval(interval));
  const stored =
    series.length === 0 ? 'Nothing is stored of this coin.' : `Stored: ${series.map(formatSeries).join(', ')}.`;
  const finer = chart.kind === 'candles' && candles.length > 0 ? ', and no finer candles to aggregate' : '';
  return (
    <p class="notice">
      There are no {describeChart(chart)} in {chart.quote}
      {finer}. {stored} The forms below show what it costs to fetch them.
    </p>
  );
};

async function storyOf(
  sql: Sql,
  { coin, address, sources, at, now }: Question & { readonly at: Instant },
): Promise<Html> {
  const { chart } = address;
  const told = await readSlotStory(sql, { coinId: coin.id, chart, sources, at, now });
  return (
    <section id="story" tabindex={-1} data-live>
      {told === null ? (
        <p class="notice">
          There is no history of {formatInstant(slotOf(gridOf(chart), at))}: no {describeChart(chart)} in {chart.quote}{' '}
          are stored.
        </p>
      ) : (
        <StoryList coinId={coin.id} chart={chart} told={told} />
      )}
    </section>
  );
}
