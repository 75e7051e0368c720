/**
 * Finds steps of evidence that are older than an attestation, but that the attestation does not have. Somebody has invented them since, so that the
 * warehouse seems to have known an answer long ago. Chandler dates each step by its own clock when it stores the step, and never adds an older step.
 */
import type { Instant } from '../../clock.ts';
import { formatCounted, toIso } from '../../core/format.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type Finding, finding } from './finding.ts';
import { MOST_BEHIND_MS } from './tables.ts';

/** The same as for histories: the clock of another machine may have been behind the clock of the machine that attested. */
const SLACK_MS = MOST_BEHIND_MS;

/** `attested`: for each series in the attestation, the number of its newest step at that time. */
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
        -- Limits the time first: adding seconds to a time that somebody has written may exceed what Postgres has.
        and least(greatest(e.known_at, '0001-01-01Z'), '9999-01-01Z') + coalesce(e.step_seconds[i.n], 0) * interval '1 second' < ${until}::timestamptz
    ) step
    group by 1, 4 order by 1`;
  return rows.map(({ subject, steps, first, isAttested }) => {
    const since = isAttested ? `from step ${first} on` : 'the attestation does not have this series';
    const detail = `the attestation does not have ${formatCounted(steps, 'step')} of its evidence from before ${toIso(until)} (${since}), and Chandler never adds older steps`;
    return finding(subject, null, 'tampered', detail);
  });
}
