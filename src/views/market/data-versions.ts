/**
 * Has anything changed? Asked before every answer that is kept, in one statement for all who ask at the same time: what was committed
 * before somebody asked is in what he is told. A commit that nobody has told of can therefore never be missed, whoever made it and
 * however often connections were lost: there is nothing to listen to.
 */
import type { Instant } from '../../clock.ts';
import { lasting } from '../../contract/answer/revalidation.ts';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createKept } from './versioned-cache.ts';

export type SeriesVersion = {
  readonly id: number;
  readonly quote: Quote;
  readonly interval: Interval;
  readonly version: number;
  /** As-of instant of the youngest answer about it. */
  readonly answeredAt: Instant | null;
};

/** A coin of the catalogue, and its series. */
export type CoinVersion = {
  /** When its data begin; null: nobody knows. */
  readonly firstDataAt: Instant | null;
  readonly series: readonly SeriesVersion[];
};

export type Versions = {
  /** By table: the same number, the same rows. */
  topics(): Promise<Topics>;
  /** Null: the catalogue has no such coin. */
  coin(coinId: string): Promise<CoinVersion | null>;
  /** To be told of each question for something of a view that may be kept: was it there, and still true? */
  counted(view: string): (isHit: boolean) => void;
};

/**
 * Keeps what is made of tables alone, for as long as `versionOf` of their topics stays; the answers say so themselves
 * (contract/lasting.ts).
 */
export function createKeptByTopics<T extends object | null>({
  versions,
  view,
  versionOf,
  ...options
}: {
  readonly versions: Versions;
  readonly view: string;
  readonly versionOf: (topics: Topics) => string;
} & Omit<Parameters<typeof createKept<T>>[0], 'onGet'>): (key: string, load: () => Promise<T>) => Promise<T> {
  const onGet = versions.counted(view);
  const kept = createKept<T>({ ...options, onGet });
  return async (key, load) => {
    const version = versionOf(await versions.topics());
    return kept.get(key, version, async () => {
      const answer = await load();
      if (answer === null) return answer;
      return lasting(answer, async () => {
        const isTrue = versionOf(await versions.topics()) === version;
        // If not, it is asked for anew, and counted then.
        if (isTrue) onGet(true);
        return isTrue;
      });
    });
  };
}
/** A table that nothing was ever written to may be missing. */
export type Topics = Readonly<Record<string, number>>;

type Told = { readonly topics: Topics; readonly coins: ReadonlyMap<string, CoinVersion> };
/** Those who ask while a statement is under way are answered by the next one. */
type Round = { readonly coinIds: Set<string>; readonly told: Promise<Told> };

export type OnKept = (view: string, isHit: boolean) => void;

export function createVersions(sql: Sql, onKept: OnKept = () => undefined): Versions {
  let underWay: Promise<unknown> | null = null;
  let next: Round | null = null;
  const ask = (coinId: string | null): Promise<Told> => {
    if (next === null) {
      const coinIds = new Set<string>();
      const before = underWay;
      const told = (async () => {
        await before?.catch(() => undefined);
        next = null;
        const reading = readVersions(sql, [...coinIds]);
        underWay = reading;
        try {
          return await reading;
        } finally {
          if (underWay === reading) underWay = null;
        }
      })();
      next = { coinIds, told };
    }
    if (coinId !== null) next.coinIds.add(coinId);
    return next.told;
  };
  return {
    counted: (view) => (isHit) => onKept(view, isHit),
    topics: async () => (await ask(null)).topics,
    coin: async (coinId) => (await ask(coinId)).coins.get(coinId) ?? null,
  };
}

const NO_COINS: ReadonlyMap<string, CoinVersion> = new Map();

type SeriesRow = readonly [id: number, quote: Quote, interval: Interval, version: number, answeredAt: number | null];
type CoinRow = readonly [id: string, firstDataAt: number | null, series: readonly SeriesRow[] | null];

async function readVersions(sql: Sql, coinIds: readonly string[]): Promise<Told> {
  // A quarter of the work for Postgres, and by far the most common question.
  if (coinIds.length === 0) {
    const [row] = await sql<{ topics: Topics | null }[]>`
      select json_object_agg(topic, version) as topics from ops.version`;
    return { topics: row!.topics ?? {}, coins: NO_COINS };
  }
  const [row] = await sql<{ topics: Topics | null; coins: readonly CoinRow[] | null }[]>`
    select (select json_object_agg(topic, version) from ops.version) as topics,
      (select json_agg(json_build_array(c.id, extract(epoch from c.first_data_at), (
          select json_agg(json_build_array(s.id, s.quote, s.interval, s.version, extract(epoch from s.answered_at)) order by s.id)
          from market.series s where s.coin_id = c.id)))
        from market.coin c where c.id = any(${coinIds as string[]}::text[])) as coins`;
  const coins = (row!.coins ?? []).map(([id, firstDataAt, series]): [string, CoinVersion] => [
    id,
    { firstDataAt: toInstant(firstDataAt), series: (series ?? []).map(toSeries) },
  ]);
  return { topics: row!.topics ?? {}, coins: new Map(coins) };
}

function toSeries([id, quote, interval, version, answeredAt]: SeriesRow): SeriesVersion {
  return { id, quote, interval, version, answeredAt: toInstant(answeredAt) };
}

function toInstant(seconds: number | null): Instant | null {
  return seconds === null ? null : Math.round(seconds * 1000);
}
