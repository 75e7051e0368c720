/** What of the catalogue upstream does not give to an account's plan: a third refusal in a row is believed until the plan changes. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { storableText } from '../connection/storable-text.ts';
import type { CatalogueKind } from './catalogue-item.ts';

export type CatalogueRefusal = {
  readonly kind: CatalogueKind;
  readonly reason: string;
  /** In a row. */
  readonly times: number;
  readonly message: string;
  readonly refusedAt: Instant;
};

type Whose = { readonly accountId: string; readonly plan: string };

const LONGEST_MESSAGE = 500;

export async function readCatalogueRefusals(
  sql: SqlOrTransaction,
  { accountId, plan }: Whose,
): Promise<CatalogueRefusal[]> {
  return sql<CatalogueRefusal[]>`
    select kind, reason, times, message, refused_at
    from ops.catalogue_refusal where account_id = ${accountId} and account_plan = ${plan} order by kind`;
}

/** Resolves to how often in a row it was refused. */
export async function recordCatalogueRefusal(
  sql: SqlOrTransaction,
  {
    accountId,
    plan,
    kind,
    reason,
    message,
    at,
  }: Whose & {
    readonly kind: CatalogueKind;
    readonly reason: string;
    readonly message: string;
    readonly at: Instant;
  },
): Promise<number> {
  const [row] = await sql<{ times: number }[]>`
    insert into ops.catalogue_refusal as r (account_id, account_plan, kind, reason, times, message, refused_at)
    values (${accountId}, ${plan}, ${kind}, ${reason}, 1, ${storableText(message).slice(0, LONGEST_MESSAGE)}, ${at})
    on conflict (account_id, account_plan, kind) do update
    set reason = excluded.reason, times = r.times + 1, message = excluded.message, refused_at = excluded.refused_at
    returning times`;
  return row!.times;
}

/** It was given after all. */
export async function forgetCatalogueRefusal(
  sql: SqlOrTransaction,
  { accountId, plan, kind }: Whose & { readonly kind: CatalogueKind },
): Promise<void> {
  await sql`
    delete from ops.catalogue_refusal where account_id = ${accountId} and account_plan = ${plan} and kind = ${kind}`;
}
