/** Up to when upstream has told all it had of a tracked series: written with the chunk that reached the newest end. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';

/** An answer reached the newest end of a series: up to here upstream has told all it had. Nothing happens to a series that is not tracked. */
export async function markSeen(sql: SqlOrTransaction, seriesId: number, until: Instant): Promise<void> {
  await sql`
    update ops.tracked set seen_until = ${until}
    where series_id = ${seriesId} and (seen_until is null or seen_until < ${until})`;
}
