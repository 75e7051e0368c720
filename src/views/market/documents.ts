/** The documents of the catalogue as they were received, each with its provenance. */
import type { Instant } from '../../clock.ts';
import { confirmedNotFound, isFound, type NotFound } from '../../contract/answer/not-found.ts';
import { completeAsOf, NO_DATA, partialAsOf, withProvenance } from '../../contract/answer/provenance.ts';
import { type Document, type DocumentKind, readDocument } from '../../store/catalogue/document.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { DataVersions } from './data-versions.ts';
import { createVersionedCache } from './versioned-cache.ts';

/** Documents are a few kilobytes each; a list counts as one for every ten of its rows. */
const MAX_DOCUMENTS = 2_000;
const ROWS_PER_DOCUMENT = 10;

/** `goneAt`: since then upstream answers that it does not exist. */
export type Received<T> = { readonly value: T; readonly asOf: Instant; readonly goneAt: Instant | null };

export function createDocuments({ sql, versions }: { readonly sql: Sql; readonly versions: DataVersions }) {
  const documents = createVersionedCache<{ readonly found: Received<object> | null }>({
    versions,
    view: 'catalogue',
    maxSize: MAX_DOCUMENTS,
    sizeOf: ({ found }) => (Array.isArray(found?.value) ? 1 + found.value.length / ROWS_PER_DOCUMENT : 1),
  });
  /** Null: never received. */
  const read = async <T extends object>(kind: DocumentKind, id: string): Promise<Received<T> | null> => {
    const load = async () => ({ found: await readReceived(sql, kind, id) });
    return (await documents([`document ${kind}`], `${kind} ${id}`, load)).found as Received<T> | null;
  };
  /** A list that belongs to something. Not found: upstream knows nothing of that id; empty: the list was never received. */
  const readList = async <T>(
    kind: DocumentKind,
    id: string,
    whenMissing: () => Promise<NotFound | null>,
  ): Promise<Received<readonly T[]> | NotFound> => {
    const found = await read<readonly T[]>(kind, id);
    if (found !== null) return found.goneAt === null ? found : confirmedNotFound(found.goneAt);
    return (await whenMissing()) ?? { value: neverReceived(), asOf: 0, goneAt: null };
  };
  return { read, readList };
}

async function readReceived(sql: Sql, kind: DocumentKind, id: string): Promise<Received<object> | null> {
  const document = await readDocument(sql, kind, id);
  if (document === null) return null;
  const value = JSON.parse(document.text) as object;
  return {
    // A list that was received with a limit is complete only at its beginning.
    value: withProvenance(value, isCutList(value, document) ? partialAsOf(document.asOf) : completeAsOf(document.asOf)),
    asOf: document.asOf,
    goneAt: document.goneAt,
  };
}

/** Null: its own document was never received. */
export function received<T extends object>(found: Received<T>): T | NotFound;
export function received<T extends object>(found: Received<T> | null): T | NotFound | null;
export function received<T extends object>(found: Received<T> | null): T | NotFound | null {
  if (found === null) return null;
  return found.goneAt === null ? found.value : confirmedNotFound(found.goneAt);
}

export function listOf<T>(found: Received<readonly T[]> | NotFound): readonly T[] | NotFound {
  return isFound(found) ? found.value : found;
}

function isCutList(value: object, { isCut }: Document): boolean {
  return isCut && Array.isArray(value);
}

export function neverReceived(): readonly never[] {
  return withProvenance([], NO_DATA);
}
