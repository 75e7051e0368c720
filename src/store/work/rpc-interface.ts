/** JSON-RPC interfaces of upstreams: the tools of each as it lists them, and whether it can be used. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { storableJson, storableText } from '../connection/storable-text.ts';

/** What matters of a tool: what it insists on, and how many rows it gives at most. */
export type ListedTool = {
  readonly name: string;
  readonly required: readonly string[];
  /** Most that its argument `limit` may be; null where it does not say. */
  readonly mostRows: number | null;
};

export type RpcState = {
  /** Null: they were never listed. */
  readonly tools: readonly ListedTool[] | null;
  readonly listedAt: Instant | null;
  /** Left alone until then; null: it is used. */
  readonly closedUntil: Instant | null;
  /** In a row. */
  readonly failures: number;
  readonly message: string | null;
};

const LONGEST_MESSAGE = 500;
const UNKNOWN: RpcState = { tools: null, listedAt: null, closedUntil: null, failures: 0, message: null };

export async function readRpc(sql: SqlOrTransaction, url: string): Promise<RpcState> {
  const [row] = await sql<RpcState[]>`
    select tools, listed_at, closed_until, failures, message
    from ops.rpc where url = ${url}`;
  return row ?? UNKNOWN;
}

export async function recordTools(
  sql: SqlOrTransaction,
  { url, tools, at }: { readonly url: string; readonly tools: readonly ListedTool[]; readonly at: Instant },
): Promise<void> {
  const listed = storableJson(tools);
  await sql`
    insert into ops.rpc (url, tools, listed_at) values (${url}, ${listed}::text::jsonb, ${at})
    on conflict (url) do update
    set tools = excluded.tools, listed_at = excluded.listed_at, failures = 0, closed_until = null, message = null`;
}

/** `until` null: it failed, and is used all the same. */
export async function recordRpcFailure(
  sql: SqlOrTransaction,
  { url, message, until }: { readonly url: string; readonly message: string; readonly until: Instant | null },
): Promise<void> {
  await sql`
    insert into ops.rpc as r (url, failures, closed_until, message)
    values (${url}, 1, ${until}, ${storableText(message).slice(0, LONGEST_MESSAGE)})
    on conflict (url) do update
    set failures = r.failures + 1, closed_until = excluded.closed_until, message = excluded.message`;
}

export async function recordRpcAnswer(sql: SqlOrTransaction, url: string): Promise<void> {
  await sql`update ops.rpc set failures = 0, closed_until = null, message = null where url = ${url} and failures > 0`;
}

/** They are listed anew before they are used. */
export async function forgetTools(sql: SqlOrTransaction, url: string): Promise<void> {
  await sql`update ops.rpc set tools = null, listed_at = null where url = ${url}`;
}
