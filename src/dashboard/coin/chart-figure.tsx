/** The place of the chart with the data that its script needs, and the controls that choose what it shows. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import { isPriceInterval } from '../../core/interval.ts';
import { MADE_WIDTHS, parseBarWidth } from '../../views/chart/bar-width.ts';
import { type Extent, sourcesOf } from '../../views/chart/bars.ts';
import type { SeriesFacts } from '../../views/chart/coin-facts.ts';
import { type CoinAddress, coinPath, coinUrl, describeChart, iso, nameOf, SPANS } from './coin-address.ts';
import { QuoteChoice } from './series-table.tsx';

type ChartProps = { readonly coinId: string; readonly address: CoinAddress; readonly series: readonly SeriesFacts[] };

/** Works without scripts as well: a form, and links. */
export const ChartControls: FC<ChartProps> = ({ coinId, address, series }) => {
  const { chart, span, from, to, showsDrawdown } = address;
  const { stored, made, prices } = intervalsOf(series, address);
  const group = (label: string, names: readonly string[]) =>
    names.length === 0 ? (
      ''
    ) : (
      <optgroup label={label}>
        {names.map((name) => (
          <option value={name} selected={name === nameOf(chart)}>
            {name}
          </option>
        ))}
      </optgroup>
    );
  return (
    <div>
      <form class="filters" id="chart-form" action={coinUrl(coinId)}>
        <label>
          Interval
          <select name="interval">
            {group('Candles', stored)}
            {group('Aggregated from finer candles', made)}
            {group('Price series', prices)}
          </select>
        </label>
        <QuoteChoice quote={chart.quote} />
        <label>
          From
          <input type="date" name="from" value={dayOf(from)} />
        </label>
        <label>
          To (exclusive)
          <input type="date" name="to" value={dayOf(to)} />
        </label>
        <label>
          Drawdown
          <select name="drawdown">
            <option value="false">hidden</option>
            <option value="true" selected={showsDrawdown}>
              shown
            </option>
          </select>
        </label>
        <button type="submit">Show</button>
      </form>
      <nav aria-label="Span">
        <ul>
          {Object.keys(SPANS).map((name) => (
            <li>
              <a
                href={coinPath(coinId, { ...address, from: null, to: null }, { span: name })}
                {...(from === null && to === null && span === name ? { 'aria-current': 'true' as const } : {})}
              >
                {name}
              </a>
            </li>
          ))}
        </ul>
      </nav>
    </div>
  );
};

/** The intervals that exist in this quote, and the one that the address names, even if it does not exist. */
function intervalsOf(series: readonly SeriesFacts[], { chart }: CoinAddress) {
  const ofQuote = series.filter(({ quote }) => quote === chart.quote).map(({ interval }) => interval);
  const prices: string[] = ofQuote.filter(isPriceInterval);
  const stored: string[] = ofQuote.filter((interval) => !isPriceInterval(interval));
  const made = ['15m', '30m', '1h', ...MADE_WIDTHS.slice(0, 2), '6h', '12h', '24h', ...MADE_WIDTHS.slice(2)].filter(
    (name) => {
      const width = parseBarWidth(name)!;
      return !stored.includes(name) && sourcesOf(series, { kind: 'candles', quote: chart.quote, width }).length > 0;
    },
  );
  const now = nameOf(chart);
  if (![...prices, ...stored, ...made].includes(now)) (chart.kind === 'prices' ? prices : made).push(now);
  return { stored, made, prices };
}

function dayOf(at: Instant | null): string {
  return at === null ? '' : new Date(at).toISOString().slice(0, 10);
}

type FigureProps = ChartProps & {
  readonly window: Extent;
  /** Whether it ends with the newest slot, and follows new ones. */
  readonly isNewest: boolean;
};

export const ChartFigure: FC<FigureProps> = ({ coinId, address, window, isNewest }) => {
  const { chart, showsDrawdown } = address;
  const what = describeChart(chart);
  return (
    <figure class="chart">
      <p id="chart-readout" class="mono" aria-live="polite">
        The chart needs JavaScript; the table below has the same bars.
      </p>
      <div
        id="chart"
        tabindex={0}
        role="application"
        aria-label={`Chart of ${what} in ${chart.quote}. The table below has the same bars.`}
        aria-describedby="chart-keys"
        data-source={`${coinUrl(coinId)}/candles`}
        data-kind={chart.kind}
        data-interval={nameOf(chart)}
        data-quote={chart.quote}
        data-from={String(window.from)}
        data-to={String(window.to)}
        data-follows={String(isNewest)}
        data-at={iso(address.at) ?? ''}
        data-drawdown={String(showsDrawdown)}
      />
      <p id="chart-keys" class="soft">
        Left and Right choose a bar, Home and End the first and the last bar. Enter or a click shows the history of the
        bar. Plus and minus zoom.
      </p>
      <ul class="legend">
        {chart.kind !== 'prices' && (
          <>
            <li>
              <span class="swatch up" /> close above open
            </li>
            <li>
              <span class="swatch down" /> close below open
            </li>
          </>
        )}
        <li>
          <span class="swatch hollow" /> {chart.kind === 'prices' ? 'mark: ' : 'hollow: '}provisional (not final yet),
          or incomplete (parts of it are missing)
        </li>
        <li>
          <span class="swatch revised" /> revised after it was final
        </li>
        <li>
          <span class="swatch gap" /> missing
        </li>
        <li>
          <span class="swatch empty" /> known to be empty
        </li>
      </ul>
      <figcaption class="soft">
        {showsDrawdown && 'Drawdown: the fall from the highest close since the first loaded bar. '}
        Drawn with <a href="https://www.tradingview.com/">TradingView</a> Lightweight Charts™, copyright © 2026
        TradingView, Inc.
      </figcaption>
    </figure>
  );
};
