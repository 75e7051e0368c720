/** As if a service of this account had run its schedules a moment ago: what they still need stays reserved. */
import type { TestDatabase } from './database.ts';

export async function schedulerSeen(
  { sql }: Pick<TestDatabase, 'sql'>,
  { accountId, at }: { readonly accountId: string; readonly at: number },
): Promise<void> {
  await sql`
    insert into ops.account (id, origin, plan, scheduled_at) values (${accountId}, 'http://upstream.test', 'free', ${at})
    on conflict (id) do update set scheduled_at = excluded.scheduled_at`;
}
