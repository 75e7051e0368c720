/**
 * The tool registry: the tools of the JSON-RPC interface, listed once a day. While the interface cannot be used, Chandler uses REST, which has the
 * same data. It tries the interface again after 1, 4, 16 … minutes, at most a day.
 */
import type { Clock, Instant } from '../../clock.ts';
import { toolListSchema } from '../../contract/interface/json-rpc.ts';
import { readRecord } from '../../contract/record/records.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { DAY } from '../../core/interval.ts';
import type { Spender } from '../../quota/quota.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { recordFetchOnce } from '../../store/work/fetch.ts';
import {
  forgetTools,
  type ListedTool,
  type RpcState,
  readRpc,
  recordRpcAnswer,
  recordRpcFailure,
  recordTools,
} from '../../store/work/rpc-interface.ts';
import type { Answer } from '../../upstream/answer.ts';
import type { OutageRetry } from '../request/outage-retry.ts';
import type { Session } from '../session.ts';

type ToolFound =
  | { readonly kind: 'tool'; readonly tool: ListedTool }
  /** The interface or the tool cannot be used: the caller uses REST. */
  | { readonly kind: 'rest' }
  | { readonly kind: 'held'; readonly until: Instant; readonly reason: string };

type FindOptions = {
  /** The names of the arguments that the caller will pass. */
  readonly given: readonly string[];
  readonly spender: Spender;
  readonly retry: OutageRetry;
  readonly signal: AbortSignal | undefined;
};

export type ToolRegistry = {
  find(name: string, options: FindOptions): Promise<ToolFound>;
  /** A call failed. Resolves to true when the interface is not used for a while. */
  failed(answer: Unusable, retry: OutageRetry): Promise<boolean>;
  answered(retry: OutageRetry): Promise<void>;
  /** The interface did not understand a call: perhaps the tools have changed. Resolves to true when they are listed again before the next call. */
  relist(retry: OutageRetry): Promise<boolean>;
};

export type Unusable = Exclude<Answer, { kind: 'answered' | 'moved' }>;

/** The hosted server requires a reason for each call (upstream-api.md, section 4): 20 to 500 characters. */
export const RATIONALE = 'Keeps a local copy of this reference data up to date, within the limits of the plan.';
const LISTED_FOR_MS = DAY;
/** A younger list is right, so the call was wrong. */
const SURE_FOR_MS = 3_600_000;
const backoff = createBackoff({ firstMs: 60_000, mostMs: DAY, factor: 4 });
/** So many failures in a row are no accident. */
const CHANCE = 3;
const MOST_PAGES = 10;
/** The value of `ops.fetch.endpoint`. */
const ENDPOINT = 'tools';

export function createToolRegistry({
  sql,
  clock,
  tools,
}: {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly tools: NonNullable<Session['tools']>;
}): ToolRegistry {
  const { url } = tools;

  const failed = async (answer: Unusable, retry: OutageRetry, isChance = !isFinal(answer)): Promise<boolean> => {
    const now = clock.now();
    const state = await retry(() => readRpc(sql, url));
    const { failures } = state;
    const waitUntil = now + waitOf(answer);
    // Calls that were under way when the interface was closed fail for the same reason: they count once.
    if (isClosedAt(state, now) && waitUntil <= state.closedUntil!) return true;
    const isClosed = !isChance || failures + 1 >= CHANCE;
    const until = isClosed ? Math.max(waitUntil, now + backoff(failures, WHOLE_BOUND)) : null;
    await retry(() => recordRpcFailure(sql, { url, message: answer.message, until }));
    return isClosed;
  };

  const list = async ({ spender, retry, signal }: FindOptions): Promise<readonly ListedTool[] | ToolFound> => {
    const listed: ListedTool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MOST_PAGES; page++) {
      const rpc = { method: 'tools/list', ...(cursor === undefined ? {} : { cursor }) } as const;
      const record = { endpoint: ENDPOINT };
      const asked = await tools.sendRequest({ path: '', rpc }, { spender, record, retry, signal, mayLack: true });
      if (asked.kind === 'held') return asked;
      const { answer } = asked;
      if (answer.kind !== 'answered') {
        if (answer.kind === 'limited' && answer.by === 'rate' && tools.sharesOrigin) {
          return { kind: 'held', until: clock.now(), reason: 'limited' };
        }
        // Without the list of tools the interface cannot be used: REST has the same data.
        await failed(answer, retry, false);
        return { kind: 'rest' };
      }
      const read = readRecord(toolListSchema, answer.body);
      const rows = read.ok ? read.value.tools : [];
      await retry((again) => recordFetchOnce(sql, { ...asked.record, outcome: 'stored', rows: rows.length }, again));
      listed.push(...rows.map(asListed));
      cursor = read.ok ? read.value.nextCursor : undefined;
      if (cursor === undefined) break;
    }
    await retry(() => recordTools(sql, { url, tools: listed, at: clock.now() }));
    return listed;
  };

  return {
    failed,
    find: async (name, options) => {
      const { retry } = options;
      const state = await retry(() => readRpc(sql, url));
      const now = clock.now();
      if (isClosedAt(state, now)) return { kind: 'rest' };
      const isFresh = state.listedAt !== null && Math.abs(now - state.listedAt) < LISTED_FOR_MS;
      const listed = isFresh && state.tools !== null ? state.tools : await list(options);
      if ('kind' in listed) return listed;
      const tool = listed.find((one) => one.name === name);
      const canCall = tool?.required.every((argument) => argument === 'rationale' || options.given.includes(argument));
      return tool !== undefined && canCall ? { kind: 'tool', tool } : { kind: 'rest' };
    },
    answered: (retry) => retry(() => recordRpcAnswer(sql, url)),
    relist: async (retry) => {
      const { listedAt } = await retry(() => readRpc(sql, url));
      if (listedAt !== null && Math.abs(clock.now() - listedAt) < SURE_FOR_MS) return false;
      await retry(() => forgetTools(sql, url));
      return true;
    },
  };
}

/** True when no JSON-RPC interface answers at the address, or when it refuses for a long time. */
function isFinal(answer: Unusable): boolean {
  if (answer.exchange.noContact !== null) return true;
  if (answer.kind === 'malformed') return answer.astray;
  return answer.kind === 'limited' || (answer.kind === 'refused' && answer.reason !== 'unknown id');
}

/** A clock that was set back must not make the wait longer. */
function isClosedAt({ closedUntil }: RpcState, now: Instant): boolean {
  const wait = (closedUntil ?? 0) - now;
  return wait > 0 && wait <= DAY;
}

/** The wait that the answer names, in milliseconds; an exhausted quota is renewed on the next day. */
function waitOf(answer: Unusable): number {
  if (answer.kind !== 'limited') return 0;
  return answer.retryAfterMs ?? (answer.by === 'quota' ? DAY : 0);
}

function asListed({ name, inputSchema }: (typeof toolListSchema)['_zod']['output']['tools'][number]): ListedTool {
  const { properties } = inputSchema as { readonly properties?: { readonly limit?: { readonly maximum?: unknown } } };
  const most = properties?.limit?.maximum;
  return {
    name,
    required: inputSchema.required ?? [],
    mostRows: typeof most === 'number' && Number.isInteger(most) && most > 0 ? most : null,
  };
}
