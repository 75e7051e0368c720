/** Checks the candles that were made in advance: each must equal that of its parts, none may be missing, and none superfluous. */
import type { Instant } from '../../clock.ts';
import { PERIODS } from '../../core/calendar.ts';
import { isQuote } from '../../core/candle.ts';
import { type CandleInterval, INTERVALS } from '../../core/interval.ts';
import { finalDays } from '../../store/candle/calendar-candle.ts';
import { candlesBySlot, coarseCandle, widthOf } from '../../store/candle/coarse-candle.ts';
import { rolledUpFrom } from '../../store/candle/rollup.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { ALL_YEARS, type Correct, isInYears } from './impossible-times.ts';

const MOST_REPORTED = 20;

/**
 * Removes all rollups of the series, and the weeks and months of its coin, which may be made of them. Chandler makes them again. A trigger removes
 * the candles together with their coverage, but some may have none.
 */
function removeRollups(correct: Correct, seriesId: number | null): void {
  for (const table of ['market.rollup_coverage', 'market.rollup'])
    correct(`delete from ${table} where series_id ${seriesId === null ? 'is null' : `= ${seriesId}`}`);
  if (seriesId === null) return;
  for (const table of CALENDAR)
    correct(
      `delete from ${table} c using market.series s where s.id = ${seriesId} and c.coin_id = s.coin_id and c.quote = s.quote`,
    );
}

const CALENDAR = ['market.calendar_coverage', 'market.calendar_candle'];

/** The same for weeks and months alone. Only an id may stand in a command that somebody copies. */
function removePeriods(correct: Correct, { coinId, quote }: { readonly coinId: string; readonly quote: string }): void {
  if (!/^[\w.-]+$/.test(coinId) || !isQuote(quote)) return;
  for (const table of CALENDAR) correct(`delete from ${table} where coin_id = '${coinId}' and quote = '${quote}'`);
}

export async function wrongRollups(sql: Sql, correct: Correct = () => undefined): Promise<string[]> {
  const wrong = await rowsTooMany(sql, correct);
  for (const fine of INTERVALS) {
    for (const coarse of rolledUpFrom(fine)) {
      const rows = await sql<{ seriesId: number; openTime: Instant }[]>`
        select s.id as series_id, slot as open_time
        from market.rollup_coverage r join market.series s on s.id = r.series_id and s.interval = ${fine}::market.candle_interval
        cross join lateral (${sql.unsafe(slotsWithRows(fine, coarse))}) slots(slot)
        left join lateral (${sql.unsafe(coarseCandle(fine, coarse, { id: 's.id', slot: 'slot' }))}) made on true
        left join market.rollup stored on stored.series_id = s.id and stored.interval = ${coarse}::market.candle_interval
          and stored.open_time = slot
        where r.interval = ${coarse}::market.candle_interval and r.spans @> slot and ${sql.unsafe(hashOf('slot', 'made'))} <> ${sql.unsafe(hashOf('slot', 'stored'))}
        limit ${MOST_REPORTED}`;
      for (const { seriesId } of rows) removeRollups(correct, seriesId);
      wrong.push(
        ...rows.map(
          (row) =>
            `market.rollup: the ${coarse} candle of ${new Date(row.openTime).toISOString()} of series ${row.seriesId} does not match its ${fine} candles`,
        ),
      );
    }
  }
  return wrong;
}

/**
 * The statement below returns the slots of the series `s` in which something may be stored, and few others: coverage may include slots of whole
 * centuries. So it searches the candles in steps of this many slots, and skips each step without candles.
 */
const SLOTS_OF_STEP = 64;

function slotsWithRows(fine: CandleInterval, coarse: CandleInterval): string {
  const step = `${SLOTS_OF_STEP} * ${widthOf(coarse)}`;
  const firstFrom = (from: string) => `(
          select date_bin(${step}, c.open_time, 'epoch') from market.candle c
          where c.series_id = s.id and c.interval = '${fine}' and c.open_time >= ${from} and ${isInYears('c.open_time')}
          order by c.open_time limit 1)`;
  return `
        with recursive step(at) as (
          select ${firstFrom(`'-infinity'`)}
          union all
          select ${firstFrom(`step.at + ${step}`)} from step where step.at is not null
        )
        select generate_series(at, at + ${step} - ${widthOf(coarse)}, ${widthOf(coarse)}) from step
        union
        select m.open_time from market.rollup m
        where m.series_id = s.id and m.interval = '${coarse}' and ${isInYears('m.open_time')}`;
}

/** Which rollups are made from which interval: `1h 6h` and so on. No rollup is made from prices. */
const MADE = INTERVALS.flatMap((fine) => rolledUpFrom(fine).map((coarse) => `${fine} ${coarse}`));

/**
 * Rows outside their recorded coverage, or of an interval that is not made from the series; and recorded coverage of slots that the series does not
 * cover, or that a coarser series covers.
 */
async function rowsTooMany(sql: Sql, correct: Correct): Promise<string[]> {
  const rows = await sql<{ seriesId: number; interval: string; openTime: Instant }[]>`
    select r.series_id, r.interval, r.open_time from market.rollup r
    left join market.rollup_coverage c on c.series_id = r.series_id and c.interval = r.interval
    left join market.series s on s.id = r.series_id
    where (c.spans @> r.open_time is not true or s.interval || ' ' || r.interval <> all(${MADE}))
      and ${sql.unsafe(isInYears('r.open_time'))} order by 1, 2, 3 limit ${MOST_REPORTED}`;
  const widths = await sql<{ seriesId: number; fine: string; coarse: string }[]>`
    select c.series_id, s.interval as fine, c.interval as coarse
    from market.rollup_coverage c join market.series s on s.id = c.series_id
    where s.interval || ' ' || c.interval <> all(${MADE}) order by 1, 3 limit ${MOST_REPORTED}`;
  const years = sql.unsafe(ALL_YEARS);
  const spans = await sql<{ seriesId: number; interval: string; span: string }[]>`
    select c.series_id, c.interval, astray.span::text as span
    from market.rollup_coverage c join market.series s on s.id = c.series_id
    cross join lateral unnest(c.spans - market.slots_within(s.covered * ${years}, market.width_of(c.interval)) + c.spans * coalesce((
      select range_agg(market.slots_within(g.covered * ${years}, market.width_of(c.interval))) from market.series g
      where g.coin_id = s.coin_id and g.quote = s.quote and g.interval > s.interval and g.interval <= c.interval), '{}')) astray(span)
    order by 1, 2, 3 limit ${MOST_REPORTED}`;
  const stored: { seriesId: number; openTime: Instant; interval: string }[] = [];
  for (const interval of INTERVALS.slice(1)) {
    stored.push(
      ...(await sql<{ seriesId: number; openTime: Instant; interval: string }[]>`
        select r.series_id, r.interval, r.open_time
        from market.rollup r join market.series s on s.id = r.series_id
        join market.series own on own.coin_id = s.coin_id and own.quote = s.quote and own.interval = r.interval
        join market.candle c on c.series_id = own.id and c.interval = ${sql.unsafe(`'${interval}'`)} and c.open_time = r.open_time
        where r.interval = ${sql.unsafe(`'${interval}'`)} and ${sql.unsafe(isInYears('c.open_time'))}
        order by 1, 2, 3 limit ${MOST_REPORTED}`),
    );
  }
  for (const { seriesId } of [...rows, ...widths, ...spans, ...stored]) removeRollups(correct, seriesId);
  const at = (openTime: Instant) => new Date(openTime).toISOString();
  return [
    ...rows.map(
      (r) => `market.rollup: the ${r.interval} candle of ${at(r.openTime)} of series ${r.seriesId} should not be there`,
    ),
    ...widths.map(
      (r) =>
        `market.rollup_coverage: series ${r.seriesId} has ${r.fine} candles, and Chandler does not aggregate these into ${r.coarse}`,
    ),
    ...spans.map(
      (r) =>
        `market.rollup_coverage: ${r.interval} of series ${r.seriesId} has ${r.span}, which its own candles do not cover, or which a coarser series covers`,
    ),
    ...stored.map(
      (r) =>
        `market.rollup: the ${r.interval} candle of ${at(r.openTime)} of series ${r.seriesId} is stored although there is one from the upstream`,
    ),
  ];
}

export async function wrongCalendar(sql: Sql, correct: Correct = () => undefined): Promise<string[]> {
  const wrong = await periodsTooMany(sql, correct);
  for (const period of PERIODS) {
    const rows = await sql<{ coinId: string; quote: string; openTime: Instant }[]>`
      select coin_id, quote, open_time from (
        select v.coin_id, v.quote, made.* from market.calendar_coverage v
        cross join lateral (${sql.unsafe(
          candlesBySlot(
            `date_trunc('${period}', open_time, 'UTC')`,
            `(select * from (${finalDays('v.coin_id', 'v.quote', 'v.spans')}) d where ${isInYears('d.open_time')}) daily`,
          ),
        )}) made
        where v.period = ${period}
      ) made full join (
        select * from market.calendar_candle where period = ${period} and ${sql.unsafe(isInYears('open_time'))}
      ) stored using (coin_id, quote, open_time)
      where ${sql.unsafe(hashOf('open_time', 'made'))} <> ${sql.unsafe(hashOf('open_time', 'stored'))} or made.slots is distinct from stored.slots
      order by 1, 2, 3 limit ${MOST_REPORTED}`;
    for (const row of rows) removePeriods(correct, row);
    wrong.push(
      ...rows.map(
        ({ coinId, quote, openTime }) =>
          `market.calendar_candle: the ${period} of ${new Date(openTime).toISOString()} of ${coinId} in ${quote} does not match its days`,
      ),
    );
  }
  return wrong;
}

/** Weeks and months that are recorded as made of days which are not final. */
async function periodsTooMany(sql: Sql, correct: Correct): Promise<string[]> {
  const rows = await sql<{ coinId: string; quote: string; period: string; span: string }[]>`
    select v.coin_id, v.quote, v.period, astray.span::text as span from market.calendar_coverage v
    cross join lateral unnest(v.spans - coalesce((
      select range_agg(case when s.interval = '24h' then s.covered else c.spans end)
      from market.series s left join market.rollup_coverage c on c.series_id = s.id and c.interval = '24h'
      where s.coin_id = v.coin_id and s.quote = v.quote and s.interval <= '24h'), '{}')) astray(span)
    order by v.period desc, 1, 2, 4 limit ${MOST_REPORTED}`;
  for (const row of rows) removePeriods(correct, row);
  return rows.map(
    ({ coinId, quote, period, span }) =>
      `market.calendar_coverage: the ${period}s of ${coinId} in ${quote} have ${span}, but not all days there are final`,
  );
}

const hashOf = (slot: string, from: string) =>
  `market.candle_hash(${slot}, ${from}.open, ${from}.high, ${from}.low, ${from}.close, ${from}.volume, ${from}.market_cap)`;
