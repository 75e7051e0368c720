/** Exchanges: every one ever seen as last seen, and the ranks and volumes of all of them at every snapshot. */
import type { Instant } from '../../clock.ts';
import type { Exchange } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import { EXCHANGE_VOLUMES } from '../../core/exchange.ts';
import { writeArray, writeInstants, writeNumbers } from '../connection/array-types.ts';
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';
import { storableJson, storableText } from '../connection/storable-text.ts';

/** Whole numbers: they are stored as such. */
export const EXCHANGE_WHOLE = ['adjusted_rank', 'reported_rank', 'currencies', 'markets'] as const;
export const EXCHANGE_FLAGS = ['is_active', 'website_status', 'api_status', 'markets_data_fetched'] as const;
const HISTORY_VOLUMES = ['reported_volume_24h', 'adjusted_volume_24h'] as const;

export type ExchangeFacts = {
  readonly id: string;
  readonly name: string;
  readonly types: readonly string[];
  readonly description: string | null;
  readonly message: string | null;
  readonly links: Readonly<Record<string, readonly string[]>>;
  readonly fiats: readonly { readonly name: string; readonly symbol: string }[];
  /** As upstream says itself; null when it does not. */
  readonly updatedAt: Instant | null;
  readonly flags: Readonly<Record<(typeof EXCHANGE_FLAGS)[number], boolean>>;
  readonly whole: Readonly<Record<(typeof EXCHANGE_WHOLE)[number], number | null>>;
  readonly volumes: Readonly<Record<(typeof EXCHANGE_VOLUMES)[number], number | null>>;
  /** Its place in the list, from 0. */
  readonly position: number;
  /** Its JSON, where it is written otherwise than `exchangeRecord` writes it. */
  readonly answer: string | null;
};

const TEXTS = ['name', 'description', 'message'] as const;
const VALUES = [
  ...TEXTS,
  'answer',
  'position',
  'types',
  'links',
  'fiats',
  ...EXCHANGE_FLAGS,
  ...EXCHANGE_WHOLE,
  ...EXCHANGE_VOLUMES,
];

const LATEST = `
  insert into market.exchange as e (id, updated_at, at, first_seen_at, last_seen_at, ${VALUES.join(', ')})
  select id, coalesce(to_timestamp(updated), s.at), s.at, s.at, s.at, name, description, message, answer, position,
    array(select jsonb_array_elements_text(types::jsonb)), links::jsonb, fiats::jsonb,
    ${[...EXCHANGE_FLAGS, ...EXCHANGE_WHOLE, ...EXCHANGE_VOLUMES].join(', ')}
  from (select $1::timestamptz as at) s,
    unnest($2::text[], $3::float8[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[], $9::text[], $10::text[],
      $11::text[], $12::bool[], $13::bool[], $14::bool[], $15::bool[], $16::int[], $17::int[], $18::int[], $19::int[],
      $20::float8[], $21::float8[], $22::float8[], $23::float8[], $24::float8[], $25::float8[])
    as u(id, updated, ${VALUES.join(', ')})
  order by id
  on conflict (id) do update
  set updated_at = excluded.updated_at, at = excluded.at,
    ${VALUES.map((name) => `${name} = excluded.${name}`).join(', ')}
  where excluded > e`;

const HISTORY = `
  insert into market.exchange_history as h (exchange_id, at, updated_at, ${[...EXCHANGE_WHOLE, ...HISTORY_VOLUMES].join(', ')})
  select id, $1::timestamptz, coalesce(to_timestamp(updated), $1::timestamptz), ${[...EXCHANGE_WHOLE, ...HISTORY_VOLUMES].join(', ')}
  from unnest($2::text[], $3::float8[], $4::int[], $5::int[], $6::int[], $7::int[], $8::float8[], $9::float8[])
    as u(id, updated, ${[...EXCHANGE_WHOLE, ...HISTORY_VOLUMES].join(', ')})
  order by id
  on conflict (exchange_id, at) do update
  set updated_at = excluded.updated_at, ${[...EXCHANGE_WHOLE, ...HISTORY_VOLUMES].map((name) => `${name} = excluded.${name}`).join(', ')}
  where excluded > h`;

/** Writes one snapshot; each id once. Resolves to how many rows of history are new. Of two answers about one exchange the one updated later stays. */
export async function writeExchanges(
  sql: SqlOrTransaction,
  exchanges: readonly ExchangeFacts[],
  at: Instant,
): Promise<number> {
  if (exchanges.length === 0) return 0;
  const ids = writeArray(exchanges.map((e) => e.id));
  const updated = writeInstants(exchanges.map((e) => e.updatedAt));
  const texts = TEXTS.map((name) =>
    writeArray(exchanges.map((e) => (e[name] === null ? null : storableText(e[name])))),
  );
  const lists = (['types', 'links', 'fiats'] as const).map((name) =>
    writeArray(exchanges.map((e) => storableJson(e[name]))),
  );
  const flags = EXCHANGE_FLAGS.map((name) => writeArray(exchanges.map((e) => e.flags[name])));
  const whole = EXCHANGE_WHOLE.map((name) => writeNumbers(exchanges.map((e) => e.whole[name])));
  const volumes = (names: readonly (typeof EXCHANGE_VOLUMES)[number][]) =>
    names.map((name) => writeNumbers(exchanges.map((e) => e.volumes[name])));
  return withFreshPlans(sql, async (tx) => {
    const written = [writeArray(exchanges.map((e) => e.answer)), writeNumbers(exchanges.map((e) => e.position))];
    const latest = [at, ids, updated, ...texts, ...written, ...lists, ...flags, ...whole, ...volumes(EXCHANGE_VOLUMES)];
    await tx.unsafe(LATEST, latest, { prepare: true });
    await tx`
      update market.exchange e
      set last_seen_at = greatest(last_seen_at, ${at}), first_seen_at = least(first_seen_at, ${at})
      from unnest(${ids}::text[]) as u(id) where e.id = u.id
        and (e.last_seen_at < ${at} or e.first_seen_at > ${at})`;
    const history = [at, ids, updated, ...whole, ...volumes(HISTORY_VOLUMES)];
    const { count } = await tx.unsafe(HISTORY, history, { prepare: true });
    return count;
  });
}

/** An exchange as upstream writes it, volumes in US dollars. */
export function exchangeRecord(facts: Omit<ExchangeFacts, 'position' | 'answer'>): Exchange {
  const { id, name, types, flags, description, message, links, whole, fiats, volumes, updatedAt } = facts;
  return {
    id,
    name,
    type: [...types],
    active: flags.is_active,
    website_status: flags.website_status,
    api_status: flags.api_status,
    description,
    message,
    links: Object.fromEntries(Object.entries(links).map(([kind, addresses]) => [kind, [...addresses]])),
    markets_data_fetched: flags.markets_data_fetched,
    adjusted_rank: whole.adjusted_rank,
    reported_rank: whole.reported_rank,
    currencies: whole.currencies,
    markets: whole.markets,
    fiats: fiats.map((fiat) => ({ name: fiat.name, symbol: fiat.symbol })),
    quotes: { USD: { ...volumes } },
    last_updated: updatedAt === null ? null : formatTime(updatedAt),
  };
}
