/** Validates an answer about the catalogue: one record, or a list whose invalid rows are quarantined. Its text is kept as received. Pure. */
import type { z } from 'zod';
import type { Instant } from '../../clock.ts';
import { readRecord } from '../../contract/record/records.ts';
import { DEEPEST, depthOf, rawElements } from '../../core/raw-json.ts';
import type { SetAsideRecord } from '../../store/candle/quarantine.ts';
import type { ReceivedDocument } from '../../store/catalogue/document.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { idOf, isSound, noList, orBroken, rowsOf, type Validated, withoutValue } from '../answer/record-list.ts';

/** What is stored of an answer: its documents, and what else is written when they are the newest. */
export type CatalogueFacts = {
  readonly documents: readonly ReceivedDocument[];
  /** The list may go on after its end. */
  readonly isCut: boolean;
  readonly write: (tx: SqlOrTransaction, at: Instant) => Promise<void>;
};

export type ReceivedAnswer = {
  /** The id of the requested item. */
  readonly id: string;
  readonly body: unknown;
  /** The body as received. */
  readonly text: string;
  /** Nothing true can lie after it. */
  readonly latest: Instant;
  /** The limit of the request; null: none. */
  readonly limit: number | null;
};

type Write = (tx: SqlOrTransaction, at: Instant) => Promise<void>;

export function checkOne<S extends z.ZodType<{ readonly id: string }>>(
  schema: S,
  { id, body, text }: ReceivedAnswer,
  essence: (record: z.output<S>) => string,
  writing: (record: z.output<S>) => Write,
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
  const document = { id, text, essence: essence(read.value) };
  return {
    ok: true,
    rows: 1,
    setAside: [],
    value: { documents: [document], isCut: false, write: writing(read.value) },
  };
}

/** The valid rows, and the text of each. */
export type GoodRows<T> = {
  readonly rows: readonly T[];
  readonly texts: readonly string[];
  /** The text of the list; as received, if all rows are valid. */
  readonly text: string;
  /** The list is complete: an item that is not in it is gone. */
  readonly isWhole: boolean;
};
type Wanted = { readonly documents: readonly ReceivedDocument[]; readonly write: Write };

/** An empty list is valid. */
export function checkList<S extends z.ZodType>(
  schema: S,
  received: ReceivedAnswer,
  fault: (row: z.output<S>) => string | null,
  wanted: (good: GoodRows<z.output<S>>) => Wanted,
): Validated<CatalogueFacts> {
  const listed = rowsOf(received.body);
  if (listed === null) return noList(received.body);
  if (depthOf(received.text) > DEEPEST) return { ok: false, problem: TOO_DEEP };
  return orBroken(() => {
    const parts = rawElements(received.text);
    const rows: z.output<S>[] = [];
    const texts: string[] = [];
    const setAside: SetAsideRecord[] = [];
    let problem = '';
    let i = 0;
    for (const row of listed) {
      const read = readRecord(schema, row);
      const reason = read.ok ? fault(read.value) : withoutValue(read.problem);
      if (read.ok && reason === null) {
        rows.push(read.value);
        texts.push(parts[i]!);
      } else {
        problem ||= `[${i}].${read.ok ? reason : read.problem}`;
        setAside.push({ id: `${received.id}/${idOf(row)}`, reason: reason!, row });
      }
      i++;
    }
    if (!isSound({ rows: i, bad: setAside.length })) return { ok: false, problem };
    const isCut = received.limit !== null && i >= received.limit;
    const isGood = setAside.length === 0;
    const text = isGood ? received.text : `[${texts.join(',')}]`;
    // A quarantined row may be gone or not: nobody knows.
    const value = wanted({ rows, texts, text, isWhole: !isCut && isGood });
    return { ok: true, value: { ...value, isCut }, rows: i, setAside };
  });
}

const TOO_DEEP = `lists and objects within each other deeper than ${DEEPEST}`;
