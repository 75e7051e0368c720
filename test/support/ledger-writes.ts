/** How many statements write the row of the ledger: permits (also refused ones), and limits that the upstream reported. */
import type { Sql } from '../../src/store/connection/connect.ts';

/** Counts from now on. */
export async function countLedgerWrites(sql: Sql): Promise<() => Promise<number>> {
  await sql.unsafe(`
    create sequence public.ledger_writes;
    create function public.count_ledger_write() returns trigger language plpgsql as
      $$ begin perform nextval('public.ledger_writes'); return null; end $$;
    create trigger count_ledger_write after update on ops.quota
      for each statement execute function public.count_ledger_write();`);
  return async () => {
    const [row] = await sql<{ n: number }[]>`
      select case when is_called then last_value else 0 end::int as n from public.ledger_writes`;
    return row!.n;
  };
}
