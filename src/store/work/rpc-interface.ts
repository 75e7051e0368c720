/** The JSON-RPC interfaces of upstreams: the tools that each one lists, and whether it can be used. */
import { and, gt, sql as raw } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables, updateRows } from '../connection/tables.ts';
import { type ListedTool, rpc } from '../schema/requests.ts';
import { storableText } from '../values/storable-text.ts';

export type { ListedTool };
export type RpcState = Readonly<Omit<typeof rpc.$inferSelect, 'url'>>;

const LONGEST_MESSAGE = 500;
const UNKNOWN: RpcState = { tools: null, listedAt: null, closedUntil: null, failures: 0, message: null };
const IN_USE = { failures: 0, closedUntil: null, message: null };

export async function readRpc(sql: SqlOrTransaction, url: string): Promise<RpcState> {
  const [row] = await tables(sql).select().from(rpc).where(matches(rpc, { url }));
  return row ?? UNKNOWN;
}

export async function recordTools(
  sql: SqlOrTransaction,
  { url, tools, at }: { readonly url: string; readonly tools: readonly ListedTool[]; readonly at: Instant },
): Promise<void> {
  const listed = { tools, listedAt: at, ...IN_USE };
  await tables(sql)
    .insert(rpc)
    .values({ url, ...listed })
    .onConflictDoUpdate({ target: rpc.url, set: listed });
}

/** Records a failure. `until` is null when the interface is still used. */
export async function recordRpcFailure(
  sql: SqlOrTransaction,
  { url, message, until }: { readonly url: string; readonly message: string; readonly until: Instant | null },
): Promise<void> {
  const failed = { closedUntil: until, message: storableText(message).slice(0, LONGEST_MESSAGE) };
  await tables(sql)
    .insert(rpc)
    .values({ url, failures: 1, ...failed })
    .onConflictDoUpdate({ target: rpc.url, set: { failures: raw`${rpc.failures} + 1`, ...failed } });
}

export async function recordRpcAnswer(sql: SqlOrTransaction, url: string): Promise<void> {
  await tables(sql)
    .update(rpc)
    .set(IN_USE)
    .where(and(matches(rpc, { url }), gt(rpc.failures, 0)));
}

/** Deletes the list of tools, so that it is requested again before the next use. */
export async function forgetTools(sql: SqlOrTransaction, url: string): Promise<void> {
  await updateRows(sql, rpc, { url }, { tools: null, listedAt: null });
}
