/**
 * Finds rows of histories that are older than an attestation, but not in it: somebody invented them since. Every history grows only at its newest
 * end. A row has the as-of instant of its answer (`seen_at` of a changed coin, `valid_to` of an old document too), an answer is stored when it
 * comes, and nothing moves or imports rows of these tables.
 */
import type { Instant } from '../../clock.ts';
import { monthStart } from '../../core/calendar.ts';
import { formatCounted, toIso } from '../../core/format.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { TableFact } from './compare-table.ts';
import { type Finding, finding } from './finding.ts';
import { nameOf } from './series-line.ts';
import { MARGIN_MS, MOST_BEHIND_MS, TABLES } from './tables.ts';

/** `at`: the instant of the attestation. A history without a line in it is not judged: earlier versions wrote no line for an empty history. */
export async function compareUnattested(sql: Sql, facts: readonly TableFact[], at: Instant): Promise<Finding[]> {
  const findings: Finding[] = [];
  const until = at - MOST_BEHIND_MS;
  for (const { name, time } of TABLES) {
    const attested = facts.filter(({ table }) => table === name);
    if (time === undefined || attested.length === 0) continue;
    const spans = attested.flatMap(({ month, before }) =>
      month === undefined || before === undefined
        ? []
        : [{ from: Date.parse(`${month}-01T00:00:00Z`), to: Date.parse(before) }],
    );
    const newest = Math.max(...spans.map(({ to }) => to));
    // The newest hour was left to the next attestation. If the newest span ends with its month, earlier versions may have left out the next one.
    const isWhole = newest === monthStart(newest);
    if (spans.length > 0) spans.push({ from: newest, to: isWhole ? Number.POSITIVE_INFINITY : newest + MARGIN_MS });
    const rows = await sql<{ month: Instant; rows: number }[]>`
      select date_trunc('month', h.time, 'UTC') as month, count(*) as rows
      from (select ${sql(time)} as time from ${sql(name)} where ${sql(time)} < ${until}::timestamptz) h
      where not exists (
        select from unnest(${spans.map(({ from }) => from)}::timestamptz[], ${spans.map(({ to }) => to)}::timestamptz[]) a(b, e)
        where h.time >= a.b and h.time < a.e)
      group by 1 order by 1`;
    for (const { month, rows: found } of rows)
      findings.push(
        finding(
          name,
          Number.isFinite(month) ? nameOf(month) : null,
          'tampered',
          `${formatCounted(found, 'row')} older than ${toIso(until)} that the attestation does not have, and Chandler never adds older rows`,
        ),
      );
  }
  return findings;
}
