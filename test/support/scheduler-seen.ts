/** Records that a service of this account ran its schedules a moment ago, so that what they still need stays reserved. */
import { SCHEDULE_NAMES } from '../../src/ingest/schedule/schedules.ts';
import type { TestDatabase } from './database.ts';

export async function schedulerSeen(
  { sql }: Pick<TestDatabase, 'sql'>,
  { accountId, at }: { readonly accountId: string; readonly at: number },
): Promise<void> {
  await sql`
    insert into ops.account (id, origin, plan, scheduled_at) values (${accountId}, 'http://upstream.test', 'free', ${at})
    on conflict (id) do update set scheduled_at = excluded.scheduled_at`;
  await sql`
    insert into ops.schedule_run (schedule, tick, state, attempts, failures, owner, begun_at, ended_at)
    select name, ${at}, 'done', 1, 0, 'a:1', ${at}, ${at} from unnest(${SCHEDULE_NAMES as string[]}::text[]) name
    on conflict (schedule, tick) do nothing`;
}
