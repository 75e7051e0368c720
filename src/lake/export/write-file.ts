/** Writes one file: rows from Postgres in the format of the file, with digests of the rows and of the bytes. */

import { createHash } from 'node:crypto';
import { monthReset, monthStart } from '../../core/calendar.ts';
import { nameOfSeries } from '../../core/interval.ts';
import { intersect, type Span, type Spans } from '../../core/span.ts';
import type { CopyOut, Statements } from '../../store/copy/copy-out.ts';
import { type Month, monthsOf } from '../../views/attestation/series-state.ts';
import type { ByteSink, Destination } from '../destination/destination.ts';
import { createSeriesDigests, type DigestedSeries } from '../digest/series-digests.ts';
import { BATCH_ROWS } from '../format/format.ts';
import type { PlannedFile } from '../layout/layout.ts';
import type { SeriesWithin } from './read-series.ts';
import { typesOf } from './statements.ts';

export type WrittenFile = {
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** For a file of series: the months of each series, by its name. Only months that are wholly in the file. */
  readonly months: ReadonlyMap<string, readonly Month[]>;
};

type WriteOptions = {
  readonly copy: CopyOut;
  readonly destination: Destination;
  readonly signal: AbortSignal;
  readonly onRows: (rows: number) => void;
};

/** `statements` select the rows. `within`: the series of the file, in its order. */
export function writeFile(
  file: PlannedFile,
  statements: Statements,
  within: readonly SeriesWithin[],
  { copy, destination, signal, onRows }: WriteOptions,
): Promise<WrittenFile> {
  const { dataset, source, place } = file;
  const names = source.map(({ name }) => name);
  const digests = dataset.kind === 'series' ? createSeriesDigests(dataset, names, place) : null;
  return destination.put(file.path, async (sink) => {
    const counted = countBytes(sink);
    const writer = await file.open(counted.sink);
    let rows = 0;
    for await (const batch of copy.read(statements, typesOf({ columns: source }), BATCH_ROWS)) {
      signal.throwIfAborted();
      digests?.add(batch);
      await writer.write(batch);
      rows += batch.rows;
      onRows(batch.rows);
    }
    await writer.finish();
    const months = monthsByName(digests?.finish() ?? [], within, file.span);
    return { rows, ...counted.end(), months };
  });
}

/** Includes series without a row whose coverage shows that there is none. */
function monthsByName(
  digested: readonly DigestedSeries[],
  within: readonly SeriesWithin[],
  span: Span,
): Map<string, readonly Month[]> {
  const found = new Map(digested.map((one) => [nameOfSeries(one), one.months]));
  const whole = wholeMonths(span);
  return new Map(
    within.map((one) => {
      const name = nameOfSeries(one);
      return [name, monthsOf(intersect(one.covered, whole), found.get(name) ?? [], one.interval)] as const;
    }),
  );
}

/** The part of a span that consists of whole months. */
export function wholeMonths({ from, to }: Span): Spans {
  const begin = Number.isFinite(from) && monthStart(from) < from ? monthReset(from) : from;
  const end = Number.isFinite(to) ? monthStart(to) : to;
  return begin < end ? [{ from: begin, to: end }] : [];
}

function countBytes(sink: ByteSink) {
  const hash = createHash('sha256');
  let bytes = 0;
  return {
    sink: (part: Uint8Array) => {
      hash.update(part);
      bytes += part.length;
      return sink(part);
    },
    end: () => ({ bytes, sha256: hash.digest('hex') }),
  };
}
