/**
 * A service under one plan in virtual time and undisturbed: some coins tracked daily, and beside them a backfill of daily prices of many
 * more. The output of `chandler plan` at the beginning is compared with what happens.
 */
import type { PlanName } from '../../src/contract/plan/plans.ts';
import { PLANS } from '../../src/contract/plan/plans.ts';
import { DAY, floorToGrid, HOUR, MINUTE } from '../../src/core/interval.ts';
import { planBackfill } from '../../src/ingest/backfill/plan.ts';
import { readLearnedLimits } from '../../src/ingest/limits/learned-limits.ts';
import { forecastFrom } from '../../src/quota/forecast.ts';
import type { Environment } from '../../src/settings.ts';
import { queueBackfill } from '../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { addTracks } from '../../src/store/tracking/track-rule.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { budgetOf } from '../support/budget.ts';
import { createServiceWorld, expectAlive, type ServiceWorld } from '../support/service-world.ts';

export type YearOptions = {
  readonly plan: PlanName;
  readonly days: number;
  /** The best-ranked coins, tracked daily since `sinceDays` ago. 0: none. */
  readonly tracked: number;
  readonly sinceDays: number;
  /** Coins whose daily prices are filled, `pricesDays` back. 0: none. */
  readonly prices: number;
  readonly pricesDays: number;
  /** Coins of the market. */
  readonly coins: number;
  /** Requests a day without a key, in place of the plan's. */
  readonly perDay?: number;
  /** Time between two looks, by default half an hour. All that becomes due meanwhile is due at once, so longer steps use less of the machine. */
  readonly stepMs?: number;
  /** Further settings of the service. */
  readonly env?: Environment;
};

export type Year = {
  /** Tracked coins and their days since the start of the year without a final answer, up to the last day that can be final. */
  readonly daysMissing: readonly string[];
  /** Final daily candles of these days, and the forecast number. */
  readonly candles: { readonly held: number; readonly foretold: number };
  /**
   * The backfill of prices. Null when there was none. Days until every coin was answered, and requests until then, as planned and as sent.
   * After that only second answers are missing.
   */
  readonly prices: {
    readonly unanswered: number;
    readonly requests: { readonly sent: number; readonly planned: number };
    readonly days: { readonly took: number; readonly foretold: number };
    /** Why slots are missing at the end. */
    readonly gaps: readonly string[];
  } | null;
  readonly peak: { readonly day: number; readonly month: number };
  readonly limited: number;
  readonly requests: number;
  readonly differences: readonly string[];
};

const START = Date.UTC(2026, 2, 1);
const STEP_MS = HOUR / 2;
/** Nothing is sent within two seconds of the border of a limited window. */
const BORDER_MS = 2_100;
const KEY = 'right';

export async function liveAYear(options: YearOptions): Promise<Year> {
  const { plan, days, tracked, stepMs = STEP_MS } = options;
  const hasKey = plan !== 'free';
  const world = await createServiceWorld({
    startAt: START,
    redis: null,
    // Time passes in steps, and then all that is due is due at once. The rate per second has its own tests.
    env: {
      CHANDLER_PLAN: plan,
      CHANDLER_REQUESTS_PER_SECOND: 'unlimited',
      ...(hasKey ? { CHANDLER_API_KEY: KEY } : {}),
      ...(options.perDay === undefined ? {} : { CHANDLER_DAILY_REQUESTS: String(options.perDay) }),
      ...options.env,
    },
    simulator: {
      seed: 5,
      coins: options.coins,
      limits: {
        plan,
        keys: { [KEY]: plan },
        overrides: {
          pacePerSecond: null,
          ...(options.perDay === undefined ? {} : { anonymousRequestsPerDay: options.perDay }),
        },
      },
    },
  });
  try {
    await world.start('service');
    await world.untilListed();
    const begin = world.clock.now();
    const firstDay = floorToGrid(begin, '24h') - options.sinceDays * DAY;
    if (tracked > 0) await track(world, tracked, firstDay);
    // The first run of the schedule of freshness knows the rule.
    await world.advance(40 * MINUTE);
    const chosen = options.prices > 0 ? await fillPrices(world, options) : null;
    for (let at = world.clock.now(); at < START + days * DAY; at = world.clock.now()) {
      await world.advance(stepMs);
      if (floorToGrid(at, '24h') !== floorToGrid(world.clock.now(), '24h')) await world.advance(BORDER_MS);
      expectAlive(world);
    }
    const end = lastFinalDay(world.clock.now(), plan);
    const accounts = world.simulator.counters().accounts;
    return {
      ...(await readDays(world, firstDay, end)),
      prices: chosen === null ? null : await pricesOf(world, chosen),
      peak: {
        day: Math.max(...accounts.map(({ peak }) => peak.day)),
        month: Math.max(...accounts.map(({ peak }) => peak.month)),
      },
      limited: accounts.reduce((sum, { rejected }) => sum + rejected.day + rejected.month, 0),
      requests: world.simulator.counters().requests.total,
      differences: await differencesIn(world),
    };
  } finally {
    await world.close();
  }
}

/**
 * A day is requested within a day of when it can be final: as soon as it has ended where the plan gives only the last full day, otherwise a
 * day later.
 */
function lastFinalDay(now: number, plan: PlanName): number {
  return floorToGrid(now, '24h') - (PLANS[plan].historyDepthMs === DAY ? 2 : 3) * DAY;
}

async function track({ database, clock }: ServiceWorld, top: number, since: number): Promise<void> {
  const rule = { tier: 'top', top, interval: '24h', quote: 'usd', since, priority: 10, targetAgeMs: DAY } as const;
  await addTracks(database.sql, [rule], clock.now());
}

type Chosen = {
  readonly id: number;
  readonly queuedAt: number;
  readonly planned: number;
  readonly foretoldAt: number;
};

/** Does what `chandler backfill --series prices --detach` does, after what `chandler plan` prints. */
async function fillPrices(world: ServiceWorld, { plan: name, prices, pricesDays }: YearOptions): Promise<Chosen> {
  const { database, clock } = world;
  const { sql } = database;
  const now = clock.now();
  const coins = await sql<
    { id: string }[]
  >`select id from market.coin where is_active order by nullif(rank, 0) nulls last, id limit ${prices}`;
  const coinIds = coins.map(({ id }) => id);
  const to = floorToGrid(now, '24h') - DAY;
  const target = { coinIds, quote: 'usd', interval: 'prices-1d', span: { from: to - pricesDays * DAY, to } } as const;
  const plan = { ...PLANS[name], requestsPerSecond: Number.POSITIVE_INFINITY };
  const historyLimits = await readLearnedLimits(sql, clock, plan);
  const historyLimit = historyLimits.of('prices-1d');
  const { cost } = await planBackfill({ sql, target, now, askedSince: now, plan, historyLimit });
  const { limits, quota, reserved } = await budgetOf(world);
  const { finishAt } = forecastFrom({ ...(await quota.state()), now }, { requests: cost.requests, limits, reserved });
  await wantSeries(sql, { ...target, priority: 0 });
  const id = await queueBackfill(sql, {
    ...target,
    requestedAt: now,
    spec: {},
    plannedRequests: cost.requests,
    priority: 0,
  });
  return { id, queuedAt: now, planned: cost.requests, foretoldAt: finishAt! };
}

async function pricesOf({ database }: ServiceWorld, chosen: Chosen): Promise<Year['prices']> {
  const { sql } = database;
  const { id, queuedAt, planned, foretoldAt } = chosen;
  const [row] = await sql<{ sent: number; unanswered: number; at: number; gaps: string[] }[]>`
    with first as (
      select s.id, min(f.sent_at) as at from market.series s
      left join ops.fetch f on f.series_id = s.id and f.backfill_id = ${id} and f.outcome = 'stored'
      where s.interval = 'prices-1d' group by s.id
    )
    select (select count(*)::int from first where at is null) as unanswered, (select max(at) from first) as at,
      (select count(*)::int from ops.fetch where backfill_id = ${id} and sent_at <= (select max(at) from first)) as sent,
      array(select distinct reason from market.gaps where interval = 'prices-1d' order by 1) as gaps`;
  return {
    unanswered: row!.unanswered,
    requests: { sent: row!.sent, planned },
    days: { took: (row!.at - queuedAt) / DAY, foretold: (foretoldAt - queuedAt) / DAY },
    gaps: row!.gaps,
  };
}

/** Days from `from` up to `to`, both included, since the start of the coin. */
async function readDays(
  { database }: ServiceWorld,
  from: number,
  to: number,
): Promise<Pick<Year, 'daysMissing' | 'candles'>> {
  const rows = await database.sql<{ coinId: string; day: number; isFinal: boolean }[]>`
    select s.coin_id, d as day, s.covered @> d as is_final
    from market.series s join ops.tracked t on t.series_id = s.id join market.coin c on c.id = s.coin_id
    cross join generate_series(greatest(${from}::timestamptz, date_trunc('day', c.first_data_at, 'UTC')), ${to}::timestamptz, interval '1 day') d
    where s.interval = '24h' and t.ends_at is null and lower(s.wanted) <= d
    order by 1, 2`;
  return {
    daysMissing: rows.flatMap((row) =>
      row.isFinal ? [] : [`${row.coinId} ${new Date(row.day).toISOString().slice(0, 10)}`],
    ),
    candles: { held: rows.filter(({ isFinal }) => isFinal).length, foretold: rows.length },
  };
}

async function differencesIn({ database, clock }: ServiceWorld): Promise<string[]> {
  const differences: string[] = [];
  for await (const proof of verifySeries(database.sql, {}, clock.now()))
    differences.push(
      ...proof.differences.map((difference) => `${proof.coinId} ${proof.interval}: ${JSON.stringify(difference)}`),
    );
  return differences;
}
