/**
 * Steps of evidence that are older than an attestation which has not got them: somebody invented them since, so that the warehouse would seem to
 * have known long ago what it was told yesterday, or never. A step has the time of our clock when it is stored, and never that of an earlier step.
 */
import type { Instant } from '../../clock.ts';
import { formatCounted, toIso } from '../../core/format.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type Finding, finding } from './finding.ts';
import { MOST_BEHIND_MS } from './tables.ts';

/** So much as for histories: the clock of another machine may have been behind that of the one that attested. */
const SLACK_MS = MOST_BEHIND_MS;

/** `attested`: of each series that the attestation has, the number of its newest step then. */
export async function compareBackdated(
  sql: Sql,
  attested: ReadonlyMap<number, number>,
  at: Instant,
): Promise<Finding[]> {
  const until = at - SLACK_MS;
  const rows = await sql<{ subject: string; steps: number; first: number; isAttested: boolean }[]>`
    select s.coin_id || ' ' || s.quote || ' ' || s.interval as subject, count(*) as steps, min(step.number) as first,
      a.id is not null as is_attested
    from market.series s
    left join unnest(${[...attested.keys()]}::int[], ${[...attested.values()]}::int[]) a (id, steps) on a.id = s.id
    cross join lateral (
      select e.number + i.n - 1 as number
      from market.evidence e
      cross join lateral generate_series(1, greatest(1, coalesce(cardinality(e.step_seconds), 1))) i(n)
      where e.series_id = s.id and e.number + i.n - 1 > coalesce(a.steps, 0)
        -- To all times that somebody may have written seconds can be added.
        and least(greatest(e.known_at, '0001-01-01Z'), '9999-01-01Z') + coalesce(e.step_seconds[i.n], 0) * interval '1 second' < ${until}::timestamptz
    ) step
    group by 1, 4 order by 1`;
  return rows.map(({ subject, steps, first, isAttested }) => {
    const since = isAttested ? `from step ${first} on` : 'the attestation has no such series';
    const detail = `${formatCounted(steps, 'step')} of its evidence (${since}) older than ${toIso(until)} that the attestation has not, and older steps are never added`;
    return finding(subject, null, 'tampered', detail);
  });
}
