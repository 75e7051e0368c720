/** A dashboard over a database whose series have every reason for which a slot can be missing. */
import { systemClock } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import { createDashboard } from '../../src/dashboard/dashboard.ts';
import type { CoverageAnswer } from '../../src/dashboard/map/coverage-data.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import { isDatabaseUnavailable } from '../../src/store/connection/database-unavailable.ts';

export type CoveragePages = {
  get(path: string): Promise<{ readonly status: number; readonly text: string }>;
  /** Reads `/ui/coverage/data`. */
  data(query: Readonly<Record<string, string | number>>): Promise<CoverageAnswer>;
  /** Moves the clock, so that cached lists expire. */
  later(ms: number): void;
};

const notShown = async () => {
  throw new Error('no screen of the map shows it');
};

export function openCoveragePages(sql: Sql): CoveragePages {
  let ahead = 0;
  const dashboard = createDashboard({
    hasDocs: true,
    sql,
    clock: { ...systemClock, now: () => systemClock.now() + ahead },
    readHead: async () => ({ plan: 'free', windows: [], holds: [], chips: [], dataAt: { at: null, lookedAt: 0 } }),
    readNeeds: async () => [],
    // Needed only by other screens.
    readQuota: notShown,
    readBackfill: notShown,
    readChecks: notShown,
    trustedProxies: null,
    readRequestsByHour: notShown,
    signIns: { take: () => null, putBack: () => undefined },
    actions: {},
    isUnavailable: isDatabaseUnavailable,
    onError: (error) => {
      throw error;
    },
  });
  const get = async (path: string) => {
    const request = new Request(`http://localhost${path}`, { headers: { Host: 'localhost' } });
    const answer = await dashboard(request, { address: '127.0.0.1' });
    return { status: answer.status, text: await answer.text() };
  };
  return {
    get,
    async data(query) {
      const { status, text } = await get(`/ui/coverage/data?${new URLSearchParams(query as Record<string, string>)}`);
      if (status !== 200) throw new Error(`${status}: ${text}`);
      return JSON.parse(text) as CoverageAnswer;
    },
    later(ms) {
      ahead += ms;
    },
  };
}

/** Midnight of today. */
export const TODAY = Math.floor(Date.now() / DAY) * DAY;
const day = (n: number) => new Date(TODAY + n * DAY).toISOString();

/**
 * Each coin misses something else of the last 60 days. The reasons of `mixed` overlap in every way: a refusal has precedence over an answer
 * that waits, the newest refusal and the newest answer over older ones, and a refusal of the series over the history limit of its interval.
 */
export async function makeEveryReason(sql: Sql): Promise<void> {
  const coins = [
    'complete',
    'unasked',
    'young',
    'doubtful',
    'broken',
    'odd',
    'unknown',
    'closed',
    'wrong',
    'mixed',
    'holes',
  ];
  await sql`insert into ops.account (id, origin, plan, is_current) values ('a@b', 'https://b', 'free', true)`;
  await sql`
    insert into market.coin (id, name, symbol, rank, type, is_new, is_active, first_data_at, first_seen_at, last_seen_at, rank_seen_at)
    select c || '-coin', initcap(c), upper(c), case when c = 'holes' then 0 else n end, 'coin', false, true, null, now(), now(), now()
    from unnest(${coins}::text[]) with ordinality as u(c, n)`;
  await sql`
    insert into market.series (coin_id, quote, interval, wanted, covered)
    select id, 'usd', '24h', tstzmultirange(tstzrange(${day(-60)}, ${day(-10)})),
      case when id = 'complete-coin' then tstzmultirange(tstzrange(${day(-60)}, ${day(-10)}))
        when id = 'holes-coin' then tstzmultirange(tstzrange(${day(-60)}, ${day(-20)}), tstzrange(${day(-15)}, ${day(-10)}))
        else tstzmultirange(tstzrange(${day(-60)}, ${day(-30)}), tstzrange(${day(-20)}, ${day(-10)})) end
    from market.coin`;
  await sql`update market.series set empty_once = tstzmultirange(tstzrange(${day(-50)}, ${day(-48)})) where coin_id = 'holes-coin'`;
  // Each covered slot has a candle, or one answer reported it as empty. The map trusts these numbers.
  await sql`update market.series s set covered_candles = (
    select coalesce(sum(extract(epoch from upper(r) - lower(r))), 0) / 86400 from unnest(s.covered - s.empty_once) r)`;
  // The hour series lies behind the history limit of its interval, is wanted up to now, and not before its data begin.
  await sql`update market.coin set first_data_at = ${day(-40)}::timestamptz + interval '90 minutes' where id = 'mixed-coin'`;
  await sql`insert into market.series (coin_id, quote, interval, wanted, covered, covered_candles)
    values ('mixed-coin', 'usd', '1h', tstzmultirange(tstzrange(${day(-60)}, null)), tstzmultirange(tstzrange(${day(-3)}, ${day(-2)})), 24),
      ('mixed-coin', 'btc', '6h', tstzmultirange(tstzrange(${day(-60)}, null)), '{}', 0)`;
  await sql`insert into market.refusal (account_plan, series_id, interval, span, depth, reason, message, refused_at)
    values ('free', null, '1h', null, interval '20 days', 'history limit', 'too far back', now()),
      ('free', null, '6h', null, null, 'interval', 'not in the plan', now()),
      ('pro', null, '24h', null, interval '1 day', 'history limit', 'of another plan', now())`;
  const refuse = (coin: string, reason: string, from: number, to: number) => sql`
    insert into market.refusal (account_plan, series_id, span, reason, message, refused_at)
    select 'free', id, tstzrange(${day(from)}, ${day(to)}), ${reason}, 'no', now() from market.series
    where coin_id = ${coin} and interval in ('24h', '1h')`;
  await refuse('unknown-coin', 'unknown coin', -60, -10);
  await refuse('closed-coin', 'forbidden', -28, -24);
  await refuse('wrong-coin', 'bad request', -30, -29);
  await refuse('mixed-coin', 'forbidden', -30, -25);
  await refuse('mixed-coin', 'bad request', -27, -24);
  const wait = (coin: string, claim: string, from: number, to: number, age: number) => sql`
    insert into ops.second_opinion (claim, series_id, span, requested_at, retry_at)
    select ${claim}, id, tstzrange(${day(from)}, ${day(to)}), now() - ${age} * interval '1 hour', now() + interval '1 hour'
    from market.series where coin_id = ${coin} and interval in ('24h', '1h')`;
  await wait('young-coin', 'provisional', -21, -20, 1);
  await wait('doubtful-coin', 'unconfirmed', -30, -20, 1);
  await wait('broken-coin', 'malformed', -25, -24, 1);
  await wait('odd-coin', 'implausible', -29, -21, 1);
  await wait('mixed-coin', 'unconfirmed', -26, -21, 3);
  await wait('mixed-coin', 'malformed', -23, -22, 1);
  await wait('mixed-coin', 'provisional', -22, -20, 2);
  await sql`
    with tiers as (
      insert into ops.tier (tier, priority, interval, target_age) values ('list', 20, '24h', interval '1 day'), ('all', 0, '24h', interval '2 days')
      returning id, tier
    )
    insert into ops.tracked (series_id, tier_id, tracked_at)
    select s.id, t.id, now() from market.series s join tiers t
      on s.coin_id = 'wrong-coin' and t.tier = 'list' or s.coin_id = 'odd-coin' and t.tier = 'all'`;
}
