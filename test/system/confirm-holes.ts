/** Shared by both test files about confirming holes. */
import type { Sql } from '../../src/store/connection/connect.ts';

type Row = { readonly time_open: string };

/** The answer without the candles of these times. */
export async function without(answer: Response, isHole: (openTime: number) => boolean): Promise<Response> {
  if (!answer.ok) return answer;
  const headers = new Headers(answer.headers);
  headers.delete('content-length');
  const rows = (await answer.json()) as Row[];
  return Response.json(
    rows.filter(({ time_open }) => !isHole(Date.parse(time_open))),
    { headers },
  );
}

/** Slots that were reported as empty once, and twice. */
export async function readHoles(sql: Sql): Promise<{ once: number; twice: number }> {
  const [row] = await sql<{ once: number; twice: number }[]>`
    select sum(slots_empty_once)::int as once, sum(slots_empty_twice)::int as twice from market.coverage`;
  return { ...row! };
}
