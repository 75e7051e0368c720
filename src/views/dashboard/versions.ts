/** Shows which parts of the warehouse have changed, without reading them: a few index look-ups, however large the warehouse is. */
import type { Sql } from '../../store/connection/connect.ts';

/** A text for each part. It is different when the part has changed. */
export async function readVersions(sql: Sql): Promise<Readonly<Record<string, string>>> {
  const [row] = await sql<Record<string, string>[]>`
    select coalesce((select string_agg(topic || version, ' ' order by topic) from ops.version), '') as data,
      coalesce((select max(id) from ops.fetch), 0)::text as requests,
      coalesce((select string_agg(concat_ws(' ', id, state, progress, left_requests, finish_at, wait_until, priority), ',' order by id)
        from ops.backfill where finished_at is null), '') || coalesce((select max(id) from ops.backfill), 0) as backfills,
      coalesce((select max(id) from ops.notice), 0) || ' ' ||
        (select count(*) from ops.notice where began_at is not null and ended_at is null) as notices,
      coalesce((select string_agg(owner, ' ' order by owner) from ops.instance), '') as services`;
  return { ...row };
}
