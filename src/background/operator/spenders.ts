/** Who has spent the requests of an account, and what for. */
import type { App } from '../../app.ts';
import type { Quota } from '../../quota/quota.ts';
import { readSubjects } from '../../views/backfills/backfills.ts';

/** `subject`: the series of a backfill, and who wants it. */
export type Spender = Awaited<ReturnType<Quota['spenders']>>[number] & { readonly subject: string | null };

/** Who spent the most today first. */
export async function readSpenders(
  { database: { sql } }: Pick<App, 'database'>,
  quota: Pick<Quota, 'spenders'>,
): Promise<readonly Spender[]> {
  const spenders = await quota.spenders();
  const ids = spenders.flatMap(({ name }) =>
    name.startsWith('backfill ') ? [Number(name.slice('backfill '.length))] : [],
  );
  const subjects = await readSubjects(sql, ids);
  return spenders
    .map((spender) => ({ ...spender, subject: subjects.get(spender.name) ?? null }))
    .sort((a, b) => b.day - a.day || b.month - a.month);
}
