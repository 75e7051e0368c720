/** Validates an answer about the catalogue: one record, or a list whose invalid rows are quarantined. The text stays as received. Pure. */
import type { z } from 'zod';
import type { Instant } from '../../clock.ts';
import { readRecord } from '../../contract/record/records.ts';
import { DEEPEST, depthOf, rawElements } from '../../core/raw-json.ts';
import type { ReceivedDocument } from '../../store/catalogue/document.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { idOf, readRow, rowsOf, type Validated, validateRows } from '../answer/record-list.ts';

/** What is stored from an answer: its documents, and what `write` writes when they are the newest. */
export type CatalogueFacts = {
  readonly documents: readonly ReceivedDocument[];
  /** The list was cut at the limit, so it may have more rows. */
  readonly isTruncated: boolean;
  readonly write: (tx: SqlOrTransaction, at: Instant) => Promise<void>;
};

export type ReceivedAnswer = {
  /** The id of the requested item. */
  readonly id: string;
  readonly body: unknown;
  /** The body as received. */
  readonly text: string;
  /** A true instant cannot be later than this. */
  readonly latest: Instant;
  /** The limit of the request; null: none. */
  readonly limit: number | null;
};

type Write = (tx: SqlOrTransaction, at: Instant) => Promise<void>;

export function checkOne<S extends z.ZodType<{ readonly id: string }>>(
  schema: S,
  { id, body, text }: ReceivedAnswer,
  fingerprint: (record: z.output<S>) => string,
  write: (tx: SqlOrTransaction, record: z.output<S>, at: Instant) => Promise<void>,
): Validated<CatalogueFacts> {
  if (depthOf(text) > DEEPEST) return { ok: false, problem: TOO_DEEP };
  const read = readRecord(schema, body);
  if (!read.ok) return read;
  if (read.value.id !== id) {
    return {
      ok: false,
      problem: `an answer about ${JSON.stringify(read.value.id.slice(0, 100))}, but "${id}" was requested`,
    };
  }
  const record = read.value;
  const document = { id, text, fingerprint: fingerprint(record) };
  return {
    ok: true,
    rows: 1,
    quarantined: [],
    value: { documents: [document], isTruncated: false, write: (tx, at) => write(tx, record, at) },
  };
}

/** The valid rows, and the text of each. */
type GoodRows<T> = {
  readonly rows: readonly T[];
  readonly texts: readonly string[];
  /** The text of the list: as received if all rows are valid, or else the list of valid rows. */
  readonly text: string;
  /** The list is complete: an item that is not in it no longer exists. */
  readonly isWhole: boolean;
};
type Wanted = { readonly documents: readonly ReceivedDocument[]; readonly write: Write };

/** Validates a list. An empty list is valid. */
export function checkList<S extends z.ZodType>(
  schema: S,
  { id, body, text, limit, latest }: ReceivedAnswer,
  fault: (row: z.output<S>, latest: Instant) => string | null,
  wanted: (good: GoodRows<z.output<S>>) => Wanted,
): Validated<CatalogueFacts> {
  if (rowsOf(body) !== null && depthOf(text) > DEEPEST) return { ok: false, problem: TOO_DEEP };
  let parts: readonly string[] | null = null;
  const rows: z.output<S>[] = [];
  const texts: string[] = [];
  const read = (row: unknown, position: number) => {
    const result = readRow(schema, row, (record) => fault(record, latest));
    if (!result.ok) return result;
    parts ??= rawElements(text);
    rows.push(result.value);
    texts.push(parts[position]!);
    return null;
  };
  const finish = ({ rows: count, quarantined }: { readonly rows: number; readonly quarantined: number }) => {
    const isTruncated = limit !== null && count >= limit;
    const isGood = quarantined === 0;
    // A quarantined row may still exist or not, so the list is not complete.
    const good = { rows, texts, text: isGood ? text : `[${texts.join(',')}]`, isWhole: !isTruncated && isGood };
    return { ...wanted(good), isTruncated };
  };
  return validateRows(body, read, finish, (row) => `${id}/${idOf(row)}`);
}

const TOO_DEEP = `lists and objects within each other deeper than ${DEEPEST}`;
