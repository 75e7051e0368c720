/** The requests of a day or a month, drawn and as a table: how many are left, what spent the others and when, and the forecast. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../../clock.ts';
import { formatCount, formatCounted, formatDay, formatInstant } from '../../../core/format.ts';
import { DAY, HOUR } from '../../../core/interval.ts';
import type { SpentOverTime } from '../../../views/dashboard/spent-over-time.ts';
import { LegendEntry } from '../../parts/bars.tsx';
import type { QuotaWindow } from '../../parts/reports.ts';
import { Table } from '../../parts/table.tsx';

const WIDTH = 640;
const HEIGHT = 180;
const LEFT = 96;
const BOTTOM = 20;

type BurnDownProps = { readonly window: QuotaWindow; readonly spent: SpentOverTime; readonly now: Instant };

export const BurnDown: FC<BurnDownProps> = ({ window, spent, now }) => {
  const points = pointsOf(window, spent, now);
  return (
    <figure>
      <Drawing window={window} spent={spent} now={now} points={points} />
      <ul class="legend">
        {spent.spenders.map((name, i) => (
          <LegendEntry kind={`spender-${i}`} name={name} />
        ))}
        {window.forecast !== null && (
          <LegendEntry kind="forecast" name={window.limit === null ? 'sent (forecast)' : 'left (forecast)'} />
        )}
      </ul>
      {countUnknown(points) !== 0 && spent.every <= 1 && (
        <p class="soft">
          Chandler has no records of {formatCounted(countUnknown(points), 'request')} that it counted: it could not send
          them in time, it removed the records, or has not written them yet.
        </p>
      )}
      <details>
        <summary>As a table</summary>
        <Table
          caption={captionOf(window, spent)}
          rows={points.slice(1)}
          empty="Nothing yet."
          columns={[
            { title: 'Until', cell: ({ at }) => formatInstant(at) },
            ...spent.spenders.map((name, i) => ({
              title: name,
              isNumber: true,
              cell: ({ sums }: Point) => formatCount(sums[i]!),
            })),
            {
              title: window.limit === null ? 'Sent' : 'Left',
              isNumber: true,
              cell: ({ total }) => formatCount(window.limit === null ? total : Math.max(0, window.limit - total)),
            },
          ]}
        />
      </details>
    </figure>
  );
};

/** `sums`: spent since the window began, one number for each spender. `total`: the ledger's count, including requests without a row. */
type Point = { readonly at: Instant; readonly sums: readonly number[]; readonly total: number };

/** The present number comes from the ledger. The rows of requests, the older of which may be removed, show how it came about. */
function pointsOf(window: QuotaWindow, { spenders, buckets }: SpentOverTime, now: Instant): readonly Point[] {
  const { start, reset } = window;
  const sums = spenders.map(() => 0);
  const points = [{ at: start, sums: [...sums] }];
  for (const [i, { counts, from }] of buckets.entries()) {
    if (from >= now) break;
    for (const [k, count] of counts.entries()) sums[k]! += count;
    points.push({ at: Math.min(now, reset, buckets[i + 1]?.from ?? reset), sums: [...sums] });
  }
  const untold = window.spent - sumOf(sums);
  return points.map((point) => ({ ...point, total: Math.max(0, untold + sumOf(point.sums)) }));
}

/** Requests that the ledger counts, but no row says who spent them. */
function countUnknown(points: readonly Point[]): number {
  const { total, sums } = points.at(-1)!;
  return Math.max(0, Math.round(total - sumOf(sums)));
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, n) => sum + n, 0);
}

function captionOf({ name }: QuotaWindow, { every }: SpentOverTime): string {
  const how = every === 1 ? '' : `, estimated from every ${formatCount(every)}th request`;
  return `Requests since the ${name} began, by ${name === 'month' ? 'day' : 'hour'}${how}`;
}

const Drawing: FC<BurnDownProps & { readonly points: readonly Point[] }> = ({ window, spent, now, points }) => {
  const { limit, start, reset, forecast } = window;
  const most = limit ?? Math.max(1, window.spent, forecast?.most ?? 0);
  const x = (at: Instant) => round(LEFT + ((Math.min(at, reset) - start) / (reset - start)) * (WIDTH - LEFT - 4));
  // With a limit, spent requests reduce the height from the top.
  const y = (sent: number) => {
    const share = Math.min(1, sent / most);
    return round(4 + (limit === null ? 1 - share : share) * (HEIGHT - BOTTOM - 4));
  };
  const untold = countUnknown(points);
  const upTo = (point: Point, part: number) => untold + sumOf(point.sums.slice(0, part));
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} role="img" aria-label={labelOf(window)}>
      {spent.spenders.map((name, part) => (
        <polygon
          class={`spender-${part}`}
          points={[
            ...points.map((point) => `${x(point.at)},${y(upTo(point, part))}`),
            ...points.toReversed().map((point) => `${x(point.at)},${y(upTo(point, part + 1))}`),
          ].join(' ')}
        >
          <title>{`${name}: ${formatCount(points.at(-1)!.sums[part]!)}`}</title>
        </polygon>
      ))}
      {forecast !== null && (
        <polygon
          class="forecast"
          points={`${x(now)},${y(window.spent)} ${x(reset)},${y(forecast.least)} ${x(reset)},${y(forecast.most)}`}
        />
      )}
      <circle class="now" cx={x(now)} cy={y(window.spent)} r="4">
        <title>{`now: ${formatCount(window.spent)} sent`}</title>
      </circle>
      <line class="axis" x1={LEFT} x2={WIDTH} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM} />
      <text x={LEFT - 6} y="13" text-anchor="end">
        {formatCount(most)}
      </text>
      <text x={LEFT - 6} y={HEIGHT - BOTTOM - 3} text-anchor="end">
        0
      </text>
      {ticksOf(window).map(({ at, text }) => (
        <text x={x(at)} y={HEIGHT - 5} text-anchor="middle">
          {text}
        </text>
      ))}
    </svg>
  );
};

function labelOf({ name, spent, limit, forecast, reset }: QuotaWindow): string {
  const of = limit === null ? '' : ` of ${formatCount(limit)}`;
  const end =
    forecast === null
      ? ''
      : `; forecast until ${formatInstant(reset)}: ${formatCount(forecast.least)} to ${formatCount(forecast.most)} sent`;
  return `The ${name}: ${formatCount(spent)}${of} requests sent${end}. The table below has the numbers.`;
}

function ticksOf({ name, start, reset }: QuotaWindow) {
  const step = name === 'month' ? 7 * DAY : 6 * HOUR;
  return Array.from({ length: Math.ceil((reset - start) / step) }, (_, i) => {
    const at = start + i * step;
    return { at, text: name === 'month' ? formatDay(at).slice(5) : new Date(at).toISOString().slice(11, 16) };
  });
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
