/** What the requests of an account were spent on. */
import type { App } from '../../app.ts';
import type { Quota } from '../../quota/quota.ts';
import { readSubjects } from '../../views/backfills/backfills.ts';

/** `subject`: the series of a backfill, and who requested it. */
export type Spender = Awaited<ReturnType<Quota['spenders']>>[number] & { readonly subject: string | null };

/** The largest spender of today first. */
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
