/** The items of the catalogue: which items are wanted, when each was requested and with which outcome, and which ones are due. */
import { and, gte, inArray, sql as raw } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables } from '../connection/tables.ts';
import { catalogueItem, fetch } from '../schema/requests.ts';
import { storableText } from '../values/storable-text.ts';

/** The kinds of items. Each kind has a schedule. The ids of a kind come from the answers to earlier kinds in this list. */
export const CATALOGUE_KINDS = [
  'tags',
  'platforms',
  'contracts',
  'coin_details',
  'coin_events',
  'coin_exchanges',
  'coin_markets',
  'coin_mappings',
  'exchange_markets',
  'people',
] as const;
export type CatalogueKind = (typeof CATALOGUE_KINDS)[number];

export type CatalogueItem = {
  /** Empty if the kind has only one item. */
  readonly id: string;
  /** Rows of the last stored answer. */
  readonly rows: number;
  /** True when the JSON-RPC tool returns only the beginning of this list. */
  readonly isTruncated: boolean;
  /** The outcome of the last request, null when there was none; `times` counts how often in a row (all refusals count as one outcome). */
  readonly outcome: string | null;
  readonly times: number;
  /** A refusal of this item may be one of its kind: the upstream answered it before, or never answered any item of the kind. */
  readonly tellsOfKind: boolean;
};

/** The outcomes of a refusal that may be one of the item, or of its kind. */
const REFUSALS = ['history limit', 'forbidden', 'unknown route'] as const;
export type ItemRefusal = (typeof REFUSALS)[number];

export function isItemRefusal(outcome: string): outcome is ItemRefusal {
  return REFUSALS.some((one) => one === outcome);
}

/** The outcomes that this one repeats: a refusal may be a 402 now and a 403 the next time. */
export function outcomesLike(outcome: string): readonly string[] {
  return isItemRefusal(outcome) ? REFUSALS : [outcome];
}

/** The kinds with an item for each coin that has a series. */
const OF_COINS = ['coin_details', 'coin_events', 'coin_exchanges', 'coin_markets', 'coin_mappings'] as const;

function isOfCoins(kind: CatalogueKind): kind is (typeof OF_COINS)[number] {
  return OF_COINS.some((one) => one === kind);
}

/** Coins that have a series. `is_idle` is true when the coin is inactive in the upstream, so it rarely changes. */
function trackedCoins(sql: SqlOrTransaction) {
  return sql`
    select c.id, not c.is_active as is_idle, case when c.rank > 0 then c.rank end as rank
    from market.coin c where exists (select from market.series s where s.coin_id = c.id)`;
}

/** The wanted ids of a kind: `id`, `is_idle`, and `rank` (the order of items that were never requested). */
function wantedOf(sql: SqlOrTransaction, kind: CatalogueKind) {
  if (isOfCoins(kind)) return trackedCoins(sql);
  switch (kind) {
    case 'platforms':
      return sql`select '' as id, false as is_idle, 0 as rank`;
    case 'tags':
      // The list contains the coins of its tags. A tag without coins in the list is requested alone.
      return sql`
        select '' as id, false as is_idle, 0 as rank
        union all
        select t.id, false, t.place + 1 from market.tag t left join market.document d on d.kind = 'tag' and d.id = t.id
        where t.gone_at is null and (d.id is null or d.received->'coins' is null)
        union all
        select m.tag_id, false, null from market.coin_tag m
        where m.valid_to is null and not exists (select from market.tag t where t.id = m.tag_id) group by m.tag_id`;
    case 'contracts':
      return sql`select id, gone_at is not null as is_idle, place as rank from market.platform`;
    case 'people':
      return sql`
        select p.person_id as id, bool_and(p.valid_to is not null) as is_idle, min(c.rank) as rank
        from market.position p join (${trackedCoins(sql)}) c on c.id = p.coin_id group by p.person_id`;
    case 'exchange_markets':
      return sql`
        select u.id, bool_and(not coalesce(e.is_active, true)) as is_idle, min(e.adjusted_rank) as rank
        from (
          select x.exchange_id as id from market.coin_exchange x join (${trackedCoins(sql)}) c on c.id = x.coin_id where x.gone_at is null
          union
          select x.exchange_id from market.coin_market x join (${trackedCoins(sql)}) c on c.id = x.coin_id where x.gone_at is null
        ) u left join market.exchange e on e.id = u.id group by u.id`;
  }
}

/** How many items are wanted, and how many of them rarely change. */
export type CatalogueDemand = Readonly<Record<CatalogueKind, { readonly items: number; readonly idle: number }>>;

/** Items of a kind that are due at the same instant; null when they were never requested, or must be requested again at once. */
export type ComingItems = { readonly dueAt: Instant | null; readonly isIdle: boolean; readonly items: number };

type Ages = { readonly ageMs: number; readonly idleAgeMs: number };

/** When the wanted items are due, by the same rules as `readDue`. */
export async function readComingItems(
  sql: SqlOrTransaction,
  now: Instant,
  agesOf: Readonly<Record<CatalogueKind, Ages>>,
): Promise<Readonly<Record<CatalogueKind, readonly ComingItems[]>>> {
  const at = sql`${now}::timestamptz`;
  /** Reads several kinds with the same wanted ids at once, so that these are selected only once. */
  const coming = (kinds: readonly CatalogueKind[]) => sql<(ComingItems & { readonly kind: CatalogueKind })[]>`
    select k.kind, case
        when i.id is null or i.outcome = 'cut' then null
        when i.wait_until is not null and i.asked_at <= ${at} then i.wait_until
        else date_trunc('minute', i.asked_at) + make_interval(secs => case when w.is_idle then k.idle_age_ms else k.age_ms end / 1000)
      end as due_at, w.is_idle, count(*) as items
    from unnest(${kinds as string[]}::text[], ${kinds.map((kind) => agesOf[kind].ageMs)}::float8[],
      ${kinds.map((kind) => agesOf[kind].idleAgeMs)}::float8[]) k(kind, age_ms, idle_age_ms)
    cross join (${wantedOf(sql, kinds[0]!)}) w left join ops.catalogue_item i on i.kind = k.kind and i.id = w.id
    group by 1, 2, 3 order by 2 nulls first, 3`;
  const others = CATALOGUE_KINDS.filter((kind) => !isOfCoins(kind));
  const found = (await Promise.all([coming(OF_COINS), ...others.map((kind) => coming([kind]))])).flat();
  const of = (one: CatalogueKind) => found.flatMap(({ kind, ...items }) => (kind === one ? [items] : []));
  return Object.fromEntries(CATALOGUE_KINDS.map((kind) => [kind, of(kind)])) as Record<CatalogueKind, ComingItems[]>;
}

export function demandOf(items: Readonly<Record<CatalogueKind, readonly ComingItems[]>>): CatalogueDemand {
  const count = (some: readonly ComingItems[]) => some.reduce((sum, one) => sum + one.items, 0);
  return Object.fromEntries(
    CATALOGUE_KINDS.map((kind) => [
      kind,
      { items: count(items[kind]), idle: count(items[kind].filter(({ isIdle }) => isIdle)) },
    ]),
  ) as CatalogueDemand;
}

/** The kinds without any request so far. `isWanted` is true when the kind has items that could be requested. */
export async function readNeverRequested(
  sql: SqlOrTransaction,
  kinds: readonly CatalogueKind[],
): Promise<{ readonly kind: CatalogueKind; readonly isWanted: boolean }[]> {
  const rows = await Promise.all(
    kinds.map(async (kind) => {
      const [row] = await sql<{ isWanted: boolean }[]>`
        select exists (select from (${wantedOf(sql, kind)}) w) as is_wanted
        where not exists (select from ops.catalogue_item where kind = ${kind})`;
      return row === undefined ? [] : [{ kind, isWanted: row.isWanted }];
    }),
  );
  return rows.flat();
}

/** The minimum age of an answer before its item is requested again; `idleAgeMs` for items that rarely change. */
type ReadDue = Ages & { readonly now: Instant; readonly limit: number };

/** The due items: first those that were never requested, best rank first; then those that were requested longest ago. */
export async function readDue(
  sql: SqlOrTransaction,
  kind: CatalogueKind,
  { now, limit, ageMs, idleAgeMs }: ReadDue,
): Promise<CatalogueItem[]> {
  const at = sql`${now}::timestamptz`;
  return sql<CatalogueItem[]>`
    select w.id, coalesce(i.rows, 0) as rows, coalesce(i.is_truncated, false) as is_truncated, i.outcome, coalesce(i.times, 0) as times,
      i.answered_at is not null
        or not exists (select from ops.catalogue_item a where a.kind = ${kind} and a.answered_at is not null) as tells_of_kind
    from (${wantedOf(sql, kind)}) w left join ops.catalogue_item i on i.kind = ${kind} and i.id = w.id
    where case
      when i.id is null or i.outcome = 'cut' then true
      -- A clock that was set back must not stretch the wait.
      when i.wait_until is not null and i.asked_at <= ${at} then i.wait_until <= ${at}
      -- Compares with the minute of the run: an item that is due once a day must not be skipped because it was requested moments after the run began.
      else abs(extract(epoch from ${at} - date_trunc('minute', i.asked_at))) * 1000 >= case when w.is_idle then ${idleAgeMs} else ${ageMs} end::float8
    end
    order by i.asked_at nulls first, w.is_idle, w.rank nulls last, w.id limit ${limit}`;
}

export type ItemEnd = {
  readonly kind: CatalogueKind;
  readonly id: string;
  readonly askedAt: Instant;
  /** `stored`, `cut`, `unconfirmed`, or as in `ops.fetch`. */
  readonly outcome: string;
  /** Rows of an answer that was stored. */
  readonly rows?: number;
  /** True: it is requested over REST from now on, because REST returns the whole list. False: with the tool again. */
  readonly isTruncated?: boolean;
  /** The item is not requested before this instant; null when its age decides. */
  readonly waitUntil: Instant | null;
  readonly message: string | null;
};

/** Longer messages are cut. */
const LONGEST_MESSAGE = 500;

export async function recordItem(sql: SqlOrTransaction, end: ItemEnd): Promise<void> {
  const { kind, id, askedAt, outcome, rows, isTruncated, waitUntil, message } = end;
  const isStored = outcome === 'stored' || outcome === 'cut';
  const asked = {
    askedAt,
    outcome,
    waitUntil,
    message: message === null ? null : storableText(message).slice(0, LONGEST_MESSAGE),
  };
  // Columns that this request has no value for do not change.
  const found = { answeredAt: isStored ? askedAt : undefined, rows, isTruncated };
  await tables(sql)
    .insert(catalogueItem)
    .values({ kind, id, times: 1, ...asked, ...found })
    .onConflictDoUpdate({
      target: [catalogueItem.kind, catalogueItem.id],
      set: {
        ...asked,
        ...found,
        times: raw`case when ${inArray(catalogueItem.outcome, [...outcomesLike(outcome)])} then ${catalogueItem.times} + 1 else 1 end`,
      },
    });
}

/** Refused items are due again: the plan has changed. How often each was refused stays, so that none counts twice against its kind. */
export async function forgetItemRefusals(sql: SqlOrTransaction): Promise<void> {
  await sql`
    update ops.catalogue_item set wait_until = asked_at
    where outcome = any(${[...REFUSALS]}::text[]) and wait_until is not null`;
}

export type CatalogueAge = {
  readonly kind: CatalogueKind;
  /** Wanted items: all, those that rarely change, those with an answer, and those unknown to the upstream. */
  readonly items: number;
  readonly idle: number;
  readonly answered: number;
  readonly unknown: number;
  /** When the oldest answer about an item that is not idle arrived. */
  readonly oldestAt: Instant | null;
  readonly newestAt: Instant | null;
};

/** The ages of the answers of each kind. */
export async function readCatalogueAges(sql: SqlOrTransaction): Promise<CatalogueAge[]> {
  /** Reads several kinds with the same wanted ids at once, so that these are selected only once. */
  const ages = (kinds: readonly CatalogueKind[]) => sql<CatalogueAge[]>`
    select k.kind, count(w.id) as items, count(*) filter (where w.is_idle) as idle, count(i.answered_at) as answered,
      count(*) filter (where i.outcome = 'unknown id') as unknown,
      min(i.answered_at) filter (where not w.is_idle) as oldest_at, max(i.answered_at) as newest_at
    from unnest(${kinds as string[]}::text[]) k(kind) left join (${wantedOf(sql, kinds[0]!)}) w on true
    left join ops.catalogue_item i on i.kind = k.kind and i.id = w.id group by k.kind`;
  const others = CATALOGUE_KINDS.filter((kind) => !isOfCoins(kind));
  const found = (await Promise.all([ages(OF_COINS), ...others.map((kind) => ages([kind]))])).flat();
  return CATALOGUE_KINDS.map((kind) => found.find((age) => age.kind === kind)!);
}

/** The number of requests that this account has sent for a kind since an instant. */
export async function countRequestsSince(
  sql: SqlOrTransaction,
  { kind, accountId, since }: { readonly kind: CatalogueKind; readonly accountId: string; readonly since: Instant },
): Promise<number> {
  const isOfKind = matches(fetch, { endpoint: kind, accountId, seriesId: null });
  return tables(sql).$count(fetch, and(isOfKind, gte(fetch.sentAt, since)));
}
