/** Finds the end of a CSV record, and splits a record into fields. */
import { NotReadable } from './not-readable.ts';

/** The index of the line feed that ends the record, not of one in quotes; -1 when the text ends before. `separators`: the possible ones. */
export function endOfRecord(text: string, from: number, separators: string): number {
  for (let start = from, isOpen = false; ; ) {
    const feed = text.indexOf('\n', start);
    if (feed === -1) return -1;
    const line = text.slice(start, feed);
    if (line.includes('"')) isOpen = endsInQuotes(line, isOpen, separators);
    if (!isOpen) return feed;
    start = feed + 1;
  }
}

/** A quote opens a field only at its begin. Elsewhere it is a letter, as in `5" disk`. A quote in a quoted field is written twice. */
function endsInQuotes(line: string, isOpenBefore: boolean, separators: string): boolean {
  let isOpen = isOpenBefore;
  for (let at = line.indexOf('"'); at !== -1; at = line.indexOf('"', at + 1)) {
    if (!isOpen) isOpen = at === 0 || separators.includes(line[at - 1]!);
    else if (line[at + 1] === '"') at++;
    else isOpen = false;
  }
  return isOpen;
}

/** An empty field without quotes is null. */
export function splitRecord(record: string, separator: string): (string | null)[] {
  if (!record.includes('"')) return record.split(separator).map((field) => (field === '' ? null : field));
  const fields: (string | null)[] = [];
  for (let at = 0; at <= record.length; ) {
    if (record[at] !== '"') {
      const next = record.indexOf(separator, at);
      const end = next === -1 ? record.length : next;
      fields.push(end === at ? null : record.slice(at, end));
      at = end + 1;
      continue;
    }
    let field = '';
    let from = at + 1;
    for (;;) {
      const quote = record.indexOf('"', from);
      if (quote === -1) throw new NotReadable('has a quote that is not closed');
      field += record.slice(from, quote);
      from = quote + 1;
      if (record[from] !== '"') break;
      field += '"';
      from++;
    }
    fields.push(field);
    if (from < record.length && record[from] !== separator) throw new NotReadable('has text after a closing quote');
    at = from + 1;
  }
  return fields;
}
