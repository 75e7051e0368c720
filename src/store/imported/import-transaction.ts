/**
 * The transaction of an import, on a connection of its own. Rows go in by COPY, and all of them or none are stored. It locks the rows of its
 * source in `market.imported_series`, and nothing that ingestion writes.
 */
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import type pg from 'pg';
import type { Instant } from '../../clock.ts';
import { type CandleInterval, nameOfSeries, type SeriesName } from '../../core/interval.ts';
import type { Sql } from '../connection/connect.ts';
import type { Watchdog } from '../connection/connection-watchdog.ts';
import { copyInto, openPgClient } from '../connection/pg-client.ts';
import { explainDatabaseError } from '../connection/store-error.ts';
import { COLUMNS, COPY_END, COPY_HEADER, STAGED_COLUMNS } from './encode-candles.ts';

type ImportedName = SeriesName & { readonly interval: CandleInterval };

/** A series as it was before the import. */
export type BeforeImport = {
  readonly id: number;
  readonly candles: number;
  readonly first: Instant | null;
  readonly last: Instant | null;
};

/** `staging` is a temporary table for rows whose slot may have another row. */
type CopyTarget = 'candles' | 'staging';

export type ImportTransaction = {
  /** Resolves in the order of the names. Missing series are created. */
  openSeries(names: readonly ImportedName[]): Promise<BeforeImport[]>;
  /** Sends encoded rows. Resolves when the stream has taken the previous rows, so that the caller can encode the next ones meanwhile. */
  copy(target: CopyTarget, rows: Buffer): Promise<void>;
  /** Runs a statement after all rows sent so far. Instants are text, in parameters and in results. */
  query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  commit(): Promise<void>;
  /** Ends the connection. Everything that is not committed is undone. */
  close(): Promise<void>;
};

const INTO: Readonly<Record<CopyTarget, string>> = {
  candles: `copy market.imported_candle (${COLUMNS}) from stdin (format binary)`,
  staging: `copy pg_temp.staged_row (${STAGED_COLUMNS}) from stdin (format binary)`,
};

const BEGIN = `begin;
  set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0; set local jit = off; set local work_mem = '64MB';
  create temporary table staged_row (
    open_time timestamptz not null, open double precision, high double precision, low double precision, close double precision,
    volume double precision, market_cap double precision, series_id integer not null, is_final boolean not null,
    file integer not null, record bigint not null
  ) on commit drop`;

/** `now` is the time of the import. @throws StoreError when no server answers there */
export async function openImport(
  { sql, url, watchdog }: { readonly sql: Sql; readonly url: string; readonly watchdog?: Watchdog | undefined },
  { source, now }: { readonly source: string; readonly now: Instant },
): Promise<ImportTransaction> {
  const explained = (error: unknown) => explainDatabaseError(error, url) ?? error;
  const client = await openPgClient({ url, applicationName: 'chandler import', watchdog }).catch((error: unknown) => {
    throw explained(error);
  });
  let series: Awaited<ReturnType<typeof createSeriesOf>>;
  try {
    await client.query(BEGIN);
    series = await createSeriesOf(source, client, sql);
  } catch (error) {
    // Its transaction may hold locks on rows.
    await client.end().catch(() => undefined);
    throw explained(error);
  }
  const copying = createCopying(client);
  const query = async <Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> => {
    try {
      await copying.end();
      await series.storeNew(now);
      const { rows } = await client.query(text, [...values]);
      return rows as Row[];
    } catch (error) {
      throw explained(error);
    }
  };
  return {
    openSeries: series.open,
    copy: async (target, rows) => {
      try {
        await copying.write(target, rows);
      } catch (error) {
        throw explained(error);
      }
    },
    query,
    commit: async () => void (await query('commit')),
    close: async () => {
      // The server ends the transaction when the connection ends, also in the middle of a COPY.
      copying.abandon();
      await client.end().catch(() => undefined);
    },
  };
}

/** Runs one COPY at a time. A write to another target, or a statement, ends it. */
function createCopying(client: pg.Client) {
  let open: { readonly target: CopyTarget; readonly stream: Writable; written: Promise<void> } | null = null;
  const begin = (target: CopyTarget) => {
    const stream = copyInto(client, INTO[target]);
    // A caller that waits for a write or for the end gets the error. Between two of these calls nobody else listens.
    stream.on('error', () => undefined);
    return { target, stream, written: send(stream, COPY_HEADER) };
  };
  const end = async () => {
    if (open === null) return;
    const { stream, written } = open;
    open = null;
    await written;
    const finished = once(stream, 'finish');
    stream.end(COPY_END);
    await finished;
  };
  return {
    write: async (target: CopyTarget, rows: Buffer) => {
      if (open !== null && open.target !== target) await end();
      open ??= begin(target);
      await open.written;
      open.written = send(open.stream, rows);
    },
    end,
    abandon: () => {
      open?.stream.destroy();
      open = null;
    },
  };
}

/** Resolves when the stream has taken the bytes. */
function send(stream: Writable, bytes: Buffer): Promise<void> {
  const sent = new Promise<void>((resolve, reject) => {
    if (stream.errored !== null) reject(stream.errored);
    stream.once('error', reject);
    stream.write(bytes, (error) => {
      stream.off('error', reject);
      if (error) reject(error);
      else resolve();
    });
  });
  // An `await` of this promise throws the error. Until then it must not count as an unhandled rejection.
  sent.catch(() => undefined);
  return sent;
}

const SERIES = `
  select id, coin_id || ' ' || quote || ' ' || interval as name, candles::text, (extract(epoch from first_open_time) * 1000)::text as first,
    (extract(epoch from last_open_time) * 1000)::text as last
  from market.imported_series where source = $1 order by id for update`;

const NEW_SERIES = `
  insert into market.imported_series (id, source, coin_id, quote, interval, imported_at) overriding system value
  select n.id, $1, n.coin_id, n.quote, n.interval::market.candle_interval, $2::timestamptz
  from unnest($3::integer[], $4::text[], $5::text[], $6::text[]) n (id, coin_id, quote, interval)`;

/**
 * The series of a source: existing and new ones. A new one gets its number at once, but is stored only just before the next statement. Storing
 * it at once would be a statement, which would end the COPY and wait for all of its rows.
 */
async function createSeriesOf(source: string, client: pg.Client, sql: Sql) {
  const { rows } = await client.query<
    { id: number; name: string } & Record<'candles' | 'first' | 'last', string | null>
  >(SERIES, [source]);
  const instant = (text: string | null) => (text === null ? null : Number(text));
  const known = new Map(
    rows.map(({ id, name, candles, first, last }): [string, BeforeImport] => [
      name,
      { id, candles: Number(candles), first: instant(first), last: instant(last) },
    ]),
  );
  let added: (ImportedName & { readonly id: number })[] = [];
  return {
    open: async (names: readonly ImportedName[]): Promise<BeforeImport[]> => {
      const missing = names.filter((name) => !known.has(nameOfSeries(name)));
      if (missing.length === 0) return names.map((name) => known.get(nameOfSeries(name))!);
      const ids = await sql<{ id: number }[]>`
        select nextval(pg_get_serial_sequence('market.imported_series', 'id'))::integer as id
        from generate_series(1, ${missing.length}::integer)`;
      for (const [i, name] of missing.entries()) {
        const { id } = ids[i]!;
        known.set(nameOfSeries(name), { id, candles: 0, first: null, last: null });
        added.push({ ...name, id });
      }
      return names.map((name) => known.get(nameOfSeries(name))!);
    },
    storeNew: async (at: Instant): Promise<void> => {
      if (added.length === 0) return;
      const columns = (['id', 'coinId', 'quote', 'interval'] as const).map((key) => added.map((name) => name[key]));
      await client.query(NEW_SERIES, [source, new Date(at).toISOString(), ...columns]);
      added = [];
    },
  };
}
