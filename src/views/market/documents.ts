/** The documents of the catalogue as they were received, each with its provenance. */
import { confirmedNotFound, type NotFound } from '../../contract/answer/not-found.ts';
import { completeAsOf, NO_DATA, partialAsOf, withProvenance } from '../../contract/answer/provenance.ts';
import { type DocumentKind, readDocument } from '../../store/catalogue/document.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createVersionedCache, type ViewDeps } from './data-versions.ts';

/** A document has a few kilobytes. A list counts as one more document for every ten of its rows. */
const MAX_DOCUMENTS = 2_000;
const ROWS_PER_DOCUMENT = 10;

export function createDocuments({ sql, versions }: ViewDeps) {
  const documents = createVersionedCache<{ readonly answer: object | NotFound | null }>({
    versions,
    view: 'catalogue',
    maxSize: MAX_DOCUMENTS,
    sizeOf: ({ answer }) => (Array.isArray(answer) ? 1 + answer.length / ROWS_PER_DOCUMENT : 1),
  });
  /** Null: never received. Not found: the upstream has answered that it has no such id. */
  const read = async <T extends object>(kind: DocumentKind, id: string): Promise<T | NotFound | null> => {
    const load = async () => ({ answer: await readReceived(sql, kind, id) });
    return (await documents([`document ${kind}`], `${kind} ${id}`, load)).answer as T | NotFound | null;
  };
  /** A list that belongs to an id. Not found: the upstream has no such id; empty: the list was never received. */
  const readList = async <T>(
    kind: DocumentKind,
    id: string,
    whenMissing: (id: string) => Promise<NotFound | null>,
  ): Promise<readonly T[] | NotFound> =>
    (await read<readonly T[]>(kind, id)) ?? (await whenMissing(id)) ?? withProvenance([], NO_DATA);
  /** The ids of platforms. There is only one list, so no id can be unknown. */
  const readPlatforms = async () => (await readList<string>('platforms', '', async () => null)) as readonly string[];
  return { read, readList, readPlatforms };
}

async function readReceived(sql: Sql, kind: DocumentKind, id: string): Promise<object | NotFound | null> {
  const document = await readDocument(sql, kind, id);
  if (document === null) return null;
  const { text, asOf, isTruncated, goneAt } = document;
  if (goneAt !== null && kind !== 'platforms') return confirmedNotFound(goneAt);
  const value = JSON.parse(text) as object;
  // A list that was received with a limit has only its beginning.
  return withProvenance(value, isTruncated && Array.isArray(value) ? partialAsOf(asOf) : completeAsOf(asOf));
}
