/**
 * The newest answer about each item of the catalogue, as received, and its old versions. `received` is the upstream's own text, so our
 * answer has the same keys in the same order, and numbers in the same spelling.
 */
import { createHash } from 'node:crypto';
import { max } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';
import { takeLock } from '../connection/lock.ts';
import { matches, tables } from '../connection/tables.ts';
import { document } from '../schema/catalogue.ts';
import { writeArray } from '../values/array-types.ts';
import { storableJsonText } from '../values/storable-text.ts';

/** Each list is one document, except the list of tags: there, each tag is a document. */
const DOCUMENT_KINDS = [
  'coin',
  'coin_events',
  'coin_exchanges',
  'coin_markets',
  'coin_mapping',
  'exchange_markets',
  'tag',
  'person',
  'platforms',
  'contracts',
] as const;
export type DocumentKind = (typeof DOCUMENT_KINDS)[number];

/** Kinds without old versions: they change every minute, or each of their rows has its own period of validity. */
const WITHOUT_REVISIONS: readonly DocumentKind[] = ['coin_exchanges', 'coin_markets', 'exchange_markets', 'contracts'];

/** The id of the newest document with this value in this field; null when there is none, or the upstream no longer has it. */
export async function findDocument(
  sql: SqlOrTransaction,
  { kind, field, value }: { readonly kind: DocumentKind; readonly field: string; readonly value: string },
): Promise<string | null> {
  const [row] = await sql<{ id: string }[]>`
    select id from market.document where kind = ${kind} and gone_at is null and received->>${field}::text = ${value}
    order by as_of desc, id limit 1`;
  return row?.id ?? null;
}

type Document = {
  readonly id: string;
  /** JSON, as received. */
  readonly text: string;
  /** No fact in the document is newer. */
  readonly asOf: Instant;
  /** Since when the id is unknown to the upstream; null when it is known. */
  readonly goneAt: Instant | null;
  /** True when the upstream's list may be longer. */
  readonly isTruncated: boolean;
};

/** Null when the id was never requested, or the upstream never had it. */
export async function readDocument(sql: SqlOrTransaction, kind: DocumentKind, id: string): Promise<Document | null> {
  const [row] = await sql<Document[]>`select ${columns(sql)} from market.document where kind = ${kind} and id = ${id}`;
  return row ?? null;
}

/** All documents of a kind, ordered by id. Of tags, only the listed ones, in the order of the list; tags that were requested alone come last. */
export async function readDocuments(sql: SqlOrTransaction, kind: DocumentKind): Promise<Document[]> {
  if (kind !== 'tag') {
    return sql<Document[]>`select ${columns(sql)} from market.document where kind = ${kind} order by id`;
  }
  return sql<Document[]>`
    select ${columns(sql)} from market.document d
    left join lateral (select place, gone_at as left_at from market.tag t where t.id = d.id) t on true
    where kind = 'tag' and d.gone_at is null and left_at is null order by place nulls last, id`;
}

/** The instant of the newest answer of a kind, for any id; null when there is none. */
export async function documentsSeenAt(sql: SqlOrTransaction, kind: DocumentKind): Promise<Instant | null> {
  const [row] = await tables(sql)
    .select({ at: max(document.asOf) })
    .from(document)
    .where(matches(document, { kind }));
  return row!.at;
}

export type ReceivedDocument = {
  readonly id: string;
  /** JSON, as received. */
  readonly text: string;
  /** Equal for two answers that differ only in values that change all the time. */
  readonly fingerprint: string;
};

type WriteDocuments = {
  readonly kind: DocumentKind;
  readonly documents: readonly ReceivedDocument[];
  readonly at: Instant;
  readonly isTruncated?: boolean;
};

/**
 * Stores documents, and the old version of those that changed. Resolves to the ids of the written documents: none has a newer answer. A whole list
 * replaces a truncated one whatever their times: it may come from a cache, or from another host, whose clock differs.
 */
export async function writeDocuments(
  sql: SqlOrTransaction,
  { kind, documents, at, isTruncated = false }: WriteDocuments,
): Promise<ReadonlySet<string>> {
  const given = [...new Map(documents.map((document) => [document.id, document])).values()];
  if (given.length === 0) return new Set();
  const written = await withFreshPlans(sql, async (tx) => {
    // Answers of a kind are written one at a time; otherwise an old version might be read before it is written.
    await takeLock(tx, `documents of ${kind}`);
    return tx<{ id: string }[]>`
    with given as materialized (
      select id, text::json as received, decode(fingerprint, 'hex') as fingerprint,
        sha256(convert_to(text, 'UTF8')) as received_sha256, ${at}::timestamptz as at
      from unnest(${writeArray(given.map((d) => d.id))}::text[], ${writeArray(given.map((d) => storableJsonText(d.text)))}::text[],
        ${writeArray(given.map((d) => hash(d.fingerprint)))}::text[]) as u(id, text, fingerprint)
    ), old as materialized (
      select d.* from market.document d join given g on g.id = d.id
      where d.kind = ${kind} and d.as_of <= g.at
    ), revised as (
      insert into market.document_revision (kind, id, valid_from, valid_to, received, received_sha256)
      select old.kind, old.id, old.changed_at, g.at, old.received, old.received_sha256 from old join given g on g.id = old.id
      where ${!WITHOUT_REVISIONS.includes(kind)} and old.fingerprint <> g.fingerprint
      on conflict do nothing
    )
    insert into market.document as d (kind, id, as_of, changed_at, is_truncated, fingerprint, received, received_sha256)
    select ${kind}, id, at, at, ${isTruncated}, fingerprint, received, received_sha256 from given order by id
    on conflict (kind, id) do update
    set as_of = excluded.as_of, is_truncated = excluded.is_truncated, fingerprint = excluded.fingerprint, received = excluded.received,
      received_sha256 = excluded.received_sha256, gone_at = null,
      changed_at = case when d.fingerprint = excluded.fingerprint or d.as_of > excluded.as_of then d.changed_at else excluded.changed_at end
    where d.as_of <= excluded.as_of or (d.is_truncated and not excluded.is_truncated)
    returning id`;
  });
  return new Set(written.map((row) => row.id));
}

/** Marks ids that the upstream no longer has. Their documents stay. */
export async function markDocumentsGone(
  sql: SqlOrTransaction,
  { kind, ids, at }: { readonly kind: DocumentKind; readonly ids: readonly string[]; readonly at: Instant },
): Promise<void> {
  await sql`
    update market.document set gone_at = ${at}
    where kind = ${kind} and id = any(${ids as string[]}::text[]) and gone_at is null and as_of <= ${at}`;
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function columns(sql: SqlOrTransaction) {
  return sql`id, received::text as text, as_of, gone_at, is_truncated`;
}
