/** Finds the end of a CSV record, and splits a record into fields. */
import { NotReadable } from './not-readable.ts';

/** The index of the line feed that ends the record, not of one in quotes; -1 when the text ends before. */
export function endOfRecord(text: string, from: number): number {
  for (let start = from, isOpen = false; ; ) {
    const feed = text.indexOf('\n', start);
    if (feed === -1) return -1;
    // A quote in a quoted field is written twice, so an even number of quotes in a line changes nothing.
    const line = text.slice(start, feed);
    if (line.includes('"') && line.split('"').length % 2 === 0) isOpen = !isOpen;
    if (!isOpen) return feed;
    start = feed + 1;
  }
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
