/**
 * Compares recounted files with the warehouse. The files of a series, its evidence and its revisions are what an attestation has, so the comparison
 * is that of attestations. It separates data that have grown since, or were changed with a record, from differences that nothing explains. For the
 * latter it names the slots.
 */
import type { Instant } from '../../clock.ts';
import { monthReset, monthStart } from '../../core/calendar.ts';
import type { Retention } from '../../core/settings/retention-settings.ts';
import { contains } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { NOTHING_YET } from '../../views/attestation/attestation.ts';
import { compareAttested } from '../../views/attestation/compare.ts';
import type { Finding } from '../../views/attestation/finding.ts';
import { SHA256_OF_CANDLES } from '../../views/attestation/read-series.ts';
import { type AttestedSeries, nameOf, SEAL_BYTES, SHORT_BYTES } from '../../views/attestation/series-line.ts';
import { sealOf } from '../../views/attestation/series-state.ts';
import { decodeMonths } from '../digest/month-book.ts';
import type { Recounted, RecountedSeries } from './recount.ts';
import type { SlotReader } from './slots.ts';

type WarehouseFinding = Finding & {
  /** For a difference that nothing explains: the first slots that differ. */
  readonly slots: readonly Instant[];
};

const UNEXPLAINED = 'the files and the warehouse differ, and no record explains it';

/** `slots` reads rows of the files again, for the months that differ. */
export async function* compareWithWarehouse(
  sql: Sql,
  recounted: Recounted,
  slots: SlotReader,
  { keep, now }: { readonly keep: Pick<Retention, 'candles'>; readonly now: Instant },
): AsyncGenerator<WarehouseFinding> {
  const [here] = await sql<{ origin: string }[]>`select coalesce(simulator, 'upstream') as origin from ops.origin`;
  const origin = here?.origin ?? NOTHING_YET;
  // As in an attestation: an empty warehouse had no origin yet.
  if (![origin, NOTHING_YET].includes(recounted.head.origin)) {
    const detail = `the warehouse holds data of ${origin}, but the files are of ${recounted.head.origin}`;
    yield { subject: 'the warehouse', month: null, verdict: 'tampered', detail, slots: [] };
    return;
  }
  for await (const found of compareAttested(
    sql,
    attestedSeries(recounted, () => false),
    keep,
    now,
  )) {
    const series = recounted.series.get(found.subject);
    const isOpen = found.verdict === 'tampered' && found.month !== null && series !== undefined;
    if (!isOpen) yield { ...found, slots: [] };
    else {
      const from = Date.parse(`${found.month}-01T00:00:00Z`);
      const differing = await slots.differing(series, { from, to: monthReset(from) });
      yield { ...found, detail: UNEXPLAINED, slots: differing };
    }
  }
  yield* compareEdges(sql, recounted, slots);
}

/** Builds what an attestation would have of the whole months in the files. */
export async function* attestedSeries(
  recounted: Recounted,
  /** Whether an archived month of a series counts. */
  wants: (name: string, month: Instant) => boolean,
): AsyncGenerator<AttestedSeries> {
  for (const [name, series] of recounted.series)
    yield attestedOf(recounted, name, series, (month) => !contains(series.archived, month) || wants(name, month));
}

function attestedOf(
  { months, datasets }: Recounted,
  name: string,
  series: RecountedSeries,
  counts: (month: Instant) => boolean,
): AttestedSeries {
  const { coinId, quote, interval, steps, link, records, encoded, unread } = series;
  const dataset = datasets.get(interval.startsWith('prices-') ? 'prices' : 'candles');
  const isRead = dataset?.columns != null;
  const known = isRead ? months.months(name) : encoded === null ? [] : decodeMonths(encoded, interval);
  const found = known.filter(({ from }) => !contains(unread, from) && counts(from));
  return {
    coinId,
    quote,
    interval,
    steps,
    // Files in the format of a tool cannot be read back. Only the manifest describes their rows, and it has no whole digests.
    seal: isRead ? sealOf({ link, records, months: found }).subarray(0, SEAL_BYTES) : null,
    // Without evidence there is no link.
    link: link.length === 0 ? Buffer.alloc(SHORT_BYTES) : link.subarray(0, SHORT_BYTES),
    records: records.subarray(0, SHORT_BYTES),
    months: found.map((month) => ({ ...month, digest: month.digest.subarray(0, SHORT_BYTES) })),
  };
}

/** Maximum number of series in one statement. */
const MOST_EDGES = 200;

/** Checks months of which only a part was exported, against the evidence about that part at the exported step. */
async function* compareEdges(
  sql: Sql,
  { edges, series }: Recounted,
  slots: SlotReader,
): AsyncGenerator<WarehouseFinding> {
  for (let at = 0; at < edges.length; at += MOST_EDGES) {
    const page = edges.slice(at, at + MOST_EDGES);
    const known = page.map((edge) => series.get(edge.series)!);
    const ids = await slots.idsOf(known);
    const rows = await sql<{ sha256: string; isRemoved: boolean }[]>`
      select found.sha256, exists (
          select from market.evidence e
          where e.series_id = a.id and e.number > a.step and e.kind = 'retention' and e.slots && a.part
        ) as is_removed
      from unnest(${ids}::int[], ${known.map(({ interval }) => interval)}::text[], ${known.map(({ steps }) => steps)}::int[],
        ${page.map(({ part }) => part)}::tstzrange[]) with ordinality as a (id, interval, step, part, position)
      cross join lateral (
        select encode(${sql.unsafe(SHA256_OF_CANDLES)}, 'hex') as sha256
        from ops.final_at(a.id, a.interval::market.candle_interval, a.step, a.part) c
      ) found
      order by a.position`;
    for (const [i, { series: subject, part, sha256 }] of page.entries()) {
      const month = nameOf(monthStart(part.from));
      const { sha256: told, isRemoved } = rows[i]!;
      if (isRemoved) yield { subject, month, verdict: 'removed', detail: 'retention removed a part of it', slots: [] };
      else if (told === sha256) yield { subject, month, verdict: 'equal', detail: '', slots: [] };
      else {
        const differing = await slots.differing(known[i]!, part);
        yield { subject, month, verdict: 'tampered', detail: UNEXPLAINED, slots: differing };
      }
    }
  }
}
