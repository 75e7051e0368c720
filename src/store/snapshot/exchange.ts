/** Exchanges: the latest state of each one, and the ranks and volumes of all of them at every snapshot. */
import type { Instant } from '../../clock.ts';
import type { Exchange } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import { EXCHANGE_VOLUMES } from '../../core/exchange.ts';
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';
import { writeArray } from '../values/array-types.ts';
import { writeInstant } from '../values/instant.ts';
import { storableJson } from '../values/storable-text.ts';

/** Columns with whole numbers. */
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
  /** The upstream's own time of the update; null when it sends none. */
  readonly updatedAt: Instant | null;
  readonly flags: Readonly<Record<(typeof EXCHANGE_FLAGS)[number], boolean>>;
  readonly whole: Readonly<Record<(typeof EXCHANGE_WHOLE)[number], number | null>>;
  readonly volumes: Readonly<Record<(typeof EXCHANGE_VOLUMES)[number], number | null>>;
  /** The place in the list, from 0. */
  readonly position: number;
  /** The JSON of the exchange, if `exchangeRecord` would write it differently. */
  readonly answer: string | null;
};

const LISTED = ['name', 'description', 'message', 'answer', 'position', 'types', 'links', 'fiats'] as const;
const HISTORY = [...EXCHANGE_WHOLE, ...HISTORY_VOLUMES].join(', ');
const VALUES = [...LISTED, ...EXCHANGE_FLAGS, ...EXCHANGE_WHOLE, ...EXCHANGE_VOLUMES];
const overwrite = (names: readonly string[]) => names.map((name) => `${name} = excluded.${name}`).join(', ');
const GIVEN = 'json_populate_recordset(null::market.exchange, $2::text::json)';

const WRITE_LATEST = `
  insert into market.exchange as e (id, updated_at, at, first_seen_at, last_seen_at, ${VALUES.join(', ')})
  select id, coalesce(updated_at, $1::timestamptz), $1, $1, $1, ${VALUES.join(', ')} from ${GIVEN} order by id
  on conflict (id) do update set ${overwrite(['updated_at', 'at', ...VALUES])} where excluded > e`;

const WRITE_HISTORY = `
  insert into market.exchange_history as h (exchange_id, at, updated_at, ${HISTORY})
  select id, $1::timestamptz, coalesce(updated_at, $1), ${HISTORY} from ${GIVEN} order by id
  on conflict (exchange_id, at) do update set ${overwrite(['updated_at', ...EXCHANGE_WHOLE, ...HISTORY_VOLUMES])}
  where excluded > h`;

/** Writes one snapshot; each id once. Resolves to the number of written rows of history. Of two answers about an exchange, the later update stays. */
export async function writeExchanges(
  sql: SqlOrTransaction,
  exchanges: readonly ExchangeFacts[],
  at: Instant,
): Promise<number> {
  if (exchanges.length === 0) return 0;
  const given = storableJson(
    exchanges.map(({ flags, whole, volumes, updatedAt, ...exchange }) => {
      const updated_at = updatedAt === null ? null : writeInstant(updatedAt);
      return { ...exchange, ...flags, ...whole, ...volumes, updated_at };
    }),
  );
  const ids = writeArray(exchanges.map((e) => e.id));
  return withFreshPlans(sql, async (tx) => {
    await tx.unsafe(WRITE_LATEST, [at, given], { prepare: true });
    await tx`
      update market.exchange e
      set last_seen_at = greatest(last_seen_at, ${at}), first_seen_at = least(first_seen_at, ${at})
      from unnest(${ids}::text[]) as u(id) where e.id = u.id
        and (e.last_seen_at < ${at} or e.first_seen_at > ${at})`;
    const { count } = await tx.unsafe(WRITE_HISTORY, [at, given], { prepare: true });
    return count;
  });
}

/** An exchange as the upstream writes it, with volumes in US dollars. */
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
