/** The stored series of a coin, what is missing, how fresh they are kept, and the buttons that change them. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import { formatCount, formatDay, formatDuration } from '../../core/format.ts';
import { ALL_INTERVALS, INTERVAL_MS } from '../../core/interval.ts';
import type { SeriesFacts } from '../../views/chart/coin-facts.ts';
import { Choice } from '../parts/choice.tsx';
import { Ago } from '../parts/moment.tsx';
import { Table } from '../parts/table.tsx';
import { coinUrl } from './coin-address.ts';

const TIER = { list: 'by id', top: 'by --top', all: 'by --all' } as const;

type SeriesProps = { readonly coinId: string; readonly series: readonly SeriesFacts[]; readonly now: Instant };

export const SeriesTable: FC<SeriesProps> = ({ coinId, series, now }) => (
  <Table
    caption="Candle series first; prices-1d and the like are price series"
    rows={series}
    empty="Nothing of this coin is stored, and nothing is wanted."
    columns={[
      {
        title: 'Series',
        cell: ({ interval, quote }) => (
          <a class="nowrap" href={`${coinUrl(coinId)}?${new URLSearchParams({ interval, quote })}`}>
            {interval} {quote}
          </a>
        ),
      },
      { title: 'From', cell: ({ from }) => <span class="nowrap">{dayOf(from)}</span> },
      {
        title: 'To',
        cell: ({ to }) => <span class="nowrap">{to === Number.POSITIVE_INFINITY ? 'now' : dayOf(to)}</span>,
      },
      { title: 'Rows', isNumber: true, cell: ({ candles }) => formatCount(candles) },
      { title: 'Missing', isNumber: true, cell: missingOf },
      { title: 'Tracked', cell: ({ tier }) => (tier === null ? 'no' : `yes, ${TIER[tier]}`) },
      { title: 'Target age', cell: ({ tier, targetAgeMs }) => (tier === null ? '' : ageOf(targetAgeMs, '')) },
      {
        title: 'Achievable age',
        cell: ({ tier, achievableAgeMs }) => (tier === null ? '' : ageOf(achievableAgeMs, 'not planned')),
      },
      {
        title: 'Newest data',
        cell: ({ tier, seenUntil }) =>
          tier === null ? '' : seenUntil === null ? 'none yet' : <Ago at={seenUntil} now={now} />,
      },
      { title: 'Change', isForButtons: true, cell: (one) => <Changes coinId={coinId} one={one} /> },
    ]}
  />
);

/** Counts slots that are too young for a final answer separately, because they need no action. */
function missingOf({ missing, unsettled }: SeriesFacts): string {
  return `${formatCount(missing)}${unsettled === 0 ? '' : `, ${formatCount(unsettled)} too recent`}`;
}

function dayOf(at: Instant | null): string {
  return at === null || !Number.isFinite(at) ? '' : formatDay(at);
}

function ageOf(ms: number | null, none: string): string {
  return ms === null ? none : formatDuration(ms);
}

const Changes: FC<{ readonly coinId: string; readonly one: SeriesFacts }> = ({ coinId, one }) => {
  const { interval, quote, missing, unsettled, firstMissingAt, lastMissingAt, isNamed } = one;
  const path = (action: string, more: Readonly<Record<string, string>> = {}) =>
    `/ui/do/${action}?${new URLSearchParams({ coin: coinId, interval, quote, ...more })}`;
  const label = (action: string) => `${action} ${interval} ${quote}`;
  return (
    <span class="actions">
      {missing > unsettled && isInstant(firstMissingAt) && isInstant(lastMissingAt) && (
        <a
          class="button"
          href={path('backfill', { from: wholeMs(Math.floor, firstMissingAt), to: wholeMs(Math.ceil, lastMissingAt) })}
          aria-label={label('fill')}
        >
          fill
        </a>
      )}
      {isNamed ? (
        <a class="button" href={path('untrack')} aria-label={label('untrack')}>
          untrack
        </a>
      ) : (
        <a class="button" href={path('track')} aria-label={label('track')}>
          track
        </a>
      )}
    </span>
  );
};

function isInstant(at: Instant | null): at is Instant {
  return at !== null && Number.isFinite(at) && at > 0;
}

/** Postgres stores microseconds, but an address does not. The wanted span may end within a millisecond. */
function wholeMs(round: (ms: number) => number, at: Instant): string {
  return new Date(round(at)).toISOString();
}

type MoreProps = { readonly coinId: string; readonly interval: string; readonly quote: string; readonly now: Instant };

/** For series that do not exist yet. The next page shows the price before anything is done. */
export const MoreOfCoin: FC<MoreProps> = ({ coinId, interval, quote, now }) => {
  const monthAgo = new Date(now - 30 * INTERVAL_MS['24h']).toISOString().slice(0, 10);
  return (
    <div>
      <form class="filters" action="/ui/do/track">
        <input type="hidden" name="coin" value={coinId} />
        <IntervalAndQuote interval={interval} quote={quote} />
        <label>
          Since
          <input type="date" name="since" value={new Date(now).toISOString().slice(0, 10)} />
        </label>
        <button type="submit">Track: show the cost</button>
      </form>
      <form class="filters" action="/ui/do/backfill">
        <input type="hidden" name="coin" value={coinId} />
        <IntervalAndQuote interval={interval} quote={quote} />
        <label>
          From
          <input type="date" name="from" required value={monthAgo} />
        </label>
        <label>
          To
          <input type="date" name="to" required value={new Date(now).toISOString().slice(0, 10)} />
        </label>
        <button type="submit">Fill: show the cost</button>
      </form>
    </div>
  );
};

const IntervalAndQuote: FC<{ readonly interval: string; readonly quote: string }> = ({ interval, quote }) => (
  <>
    <Choice name="interval" label="Interval" value={interval} options={ALL_INTERVALS} />
    <QuoteChoice quote={quote} />
  </>
);

export const QuoteChoice: FC<{ readonly quote: string }> = ({ quote }) => (
  <Choice name="quote" label="Quote" value={quote} options={['usd', 'btc']} />
);
