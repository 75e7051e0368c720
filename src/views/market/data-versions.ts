/**
 * The versions of the data. Every commit that changes data increases them. They are read before a cached answer is used, in one statement for all
 * concurrent requests. So an answer includes everything that was committed before its request. No commit is missed, because there is no message
 * that could be lost with a connection.
 */
import { LRUCache } from 'lru-cache';
import type { Clock, Instant } from '../../clock.ts';
import type { NotFound } from '../../contract/answer/not-found.ts';
import { revalidatedBy } from '../../contract/answer/revalidation.ts';
import type { Quote } from '../../core/candle.ts';
import { createBatcher } from '../../core/concurrency/batcher.ts';
import type { Interval } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';

export type SeriesVersion<Of extends Interval = Interval> = {
  readonly id: number;
  readonly quote: Quote;
  readonly interval: Of;
  readonly version: number;
  /** As-of instant of the newest answer about it. */
  readonly answeredAt: Instant | null;
};

/** A coin of the catalogue, with its series of candles and of prices. */
export type CoinVersion = {
  /** When its data begin; null: unknown. */
  readonly firstDataAt: Instant | null;
  readonly series: readonly SeriesVersion[];
};

/** By topic, which is a table or a kind of document. Equal versions mean equal rows. A table that was never written to is missing. */
type Topics = Readonly<Record<string, number>>;

/** Called for each cache lookup: which view, and whether its entry was current. */
export type OnCacheLookup = (view: string, isHit: boolean) => void;

type DataVersions = {
  /** The versions of these topics, as one text. */
  of(topics: readonly string[]): Promise<string>;
  /** Null: the catalogue has no such coin. */
  coin(coinId: string): Promise<CoinVersion | null>;
  /** Reads an answer that depends only on these topics. The answer then counts as current until one of them changes. */
  readUnder<T extends object>(topics: readonly string[], load: () => Promise<T>): Promise<T>;
  readonly onCacheLookup: OnCacheLookup;
};

/** The dependencies of the views. */
export type ViewDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly versions: DataVersions;
  /** The answer for a coin that is not in the list of coins. */
  readonly noCoin: () => Promise<NotFound>;
};

type VersionsRead = { readonly topics: Topics; readonly coins: ReadonlyMap<string, CoinVersion> };

export function createDataVersions(sql: Sql, onCacheLookup: OnCacheLookup = () => undefined): DataVersions {
  const read = createBatcher(async (coinIds: readonly (string | null)[]) => {
    const versions = await readVersions(
      sql,
      [...new Set(coinIds)].filter((id) => id !== null),
    );
    return coinIds.map(() => versions);
  });
  const of = async (topics: readonly string[]) => {
    const versions = (await read(null)).topics;
    return topics.map((topic) => versions[topic]).join(' ');
  };
  return {
    of,
    onCacheLookup,
    coin: async (coinId) => (await read(coinId)).coins.get(coinId) ?? null,
    async readUnder(topics, load) {
      // The versions are read before the data: if they change in between, the answer counts as outdated, never the other way round.
      const version = await of(topics);
      return revalidatedBy(await load(), async () => (await of(topics)) === version);
    },
  };
}

const NO_COINS: ReadonlyMap<string, CoinVersion> = new Map();

type SeriesRow = readonly [id: number, quote: Quote, interval: Interval, version: number, answeredAt: number | null];
type CoinRow = readonly [id: string, firstDataAt: number | null, series: readonly SeriesRow[] | null];

async function readVersions(sql: Sql, coinIds: readonly string[]): Promise<VersionsRead> {
  // This is a quarter of the work for Postgres, and by far the most common query.
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

/** Resolves to the result of `load` for this key, while the versions of the topics stay the same. It is the same object each time. */
type VersionedCache<T> = <V extends T>(topics: readonly string[], key: string, load: () => Promise<V>) => Promise<V>;

/**
 * Caches data that several answers share: whole lists, documents and search indexes. Reading and indexing these takes far longer than reading a
 * single record. Single records need no cache here: the service caches the bytes of its responses. Keeps the most recently used entries, at most
 * `maxSize` in the unit of `sizeOf`. Calls for an entry that is being loaded share the load.
 */
export function createVersionedCache<T extends object>({
  versions,
  view,
  maxSize,
  sizeOf = () => 1,
}: {
  readonly versions: DataVersions;
  /** Lookups are counted under this name; absent: they are not counted. */
  readonly view?: string;
  readonly maxSize: number;
  readonly sizeOf?: (value: T) => number;
}): VersionedCache<T> {
  type Entry = { readonly version: string; readonly value: Promise<T> };
  const entries = new LRUCache<string, Entry>({ maxSize });
  return async <V extends T>(topics: readonly string[], key: string, load: () => Promise<V>) => {
    const version = await versions.of(topics);
    const found = entries.get(key);
    const isHit = found?.version === version;
    if (view !== undefined) versions.onCacheLookup(view, isHit);
    if (isHit) return found.value as Promise<V>;
    const loading = versions.readUnder(topics, load);
    const entry: Entry = { version, value: loading };
    entries.set(key, entry, { size: 1 });
    try {
      const value = await loading;
      // A value that is larger than the whole cache stays until the next one comes. Otherwise it would be read each time.
      const size = Math.min(maxSize, Math.max(1, Math.ceil(sizeOf(value))));
      if (entries.peek(key) === entry) entries.set(key, entry, { size });
      return value;
    } catch (error) {
      if (entries.peek(key) === entry) entries.delete(key);
      throw error;
    }
  };
}
