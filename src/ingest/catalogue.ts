/** The list of coins: which ids exist, their ranks, and when their data begins. Two requests bring all of it. */
import type { z } from 'zod';
import type { Clock, Instant } from '../clock.ts';
import { COINS_PATH, TICKERS_PATH } from '../contract/paths.ts';
import { coinSummarySchema, describeValue, type Read, readRecord, tickerSchema } from '../contract/records.ts';
import { parseTime } from '../contract/time.ts';
import { HOUR } from '../core/interval.ts';
import { catalogueSeenAt, countListed, recordCoins, recordTickers } from '../store/coin.ts';
import type { Sql } from '../store/connect.ts';
import { recordFetch } from '../store/fetch.ts';
import { absencesAwaitList } from '../store/pending.ts';
import type { Ask, Asked } from './ask.ts';
import { ASK_AGAIN_MS } from './doubts.ts';
import { wrongAddress, wrongKey } from './misconfigured.ts';
import { createOriginCheck } from './origin.ts';
import { Misconfigured, UpstreamTrouble } from './outcome.ts';

/** Ranks move and coins appear: older than this it is asked again before it is relied on. */
export const CATALOGUE_FRESH_MS = 24 * HOUR;
const ATTEMPTS = 5;

export type CatalogueRefresh =
  | { readonly kind: 'fresh' }
  | { readonly kind: 'read'; readonly coins: number; readonly requests: number }
  | { readonly kind: 'held'; readonly until: number; readonly reason: string };

export type CatalogueDeps = {
  readonly ask: Ask;
  readonly sql: Sql;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
};

/**
 * Reads `/coins` and `/tickers` unless both were read less than `maxAgeMs` ago.
 * @throws Misconfigured when the key or the address is wrong, UpstreamTrouble when the upstream cannot be had.
 */
export async function refreshCatalogue(deps: CatalogueDeps, maxAgeMs = CATALOGUE_FRESH_MS): Promise<CatalogueRefresh> {
  const { sql, clock } = deps;
  const seenAt = await catalogueSeenAt(sql);
  if (seenAt !== null && clock.now() - seenAt < maxAgeMs) return { kind: 'fresh' };
  const known = await countListed(sql);
  const tickers = await readList(deps, TICKERS_PATH, 'tickers', (body) => readRows(tickerSchema, body));
  if (tickers.kind === 'held') return tickers;
  const coins = await readList(deps, COINS_PATH, 'coins', (body) =>
    atLeast(known * LEAST_SHARE, readRows(coinSummarySchema, body)),
  );
  if (coins.kind === 'held') return coins;
  // Together: a list without its tickers would be taken for complete, and no series be clipped to when its data began.
  await sql.begin(async (tx) => {
    // One instant for both: what is older than the list itself would be left out as out of date.
    const asOf = Math.min(coins.asOf, tickers.asOf);
    await recordCoins(tx, coins.rows, asOf);
    await recordTickers(
      tx,
      tickers.rows.map((t) => {
        const firstDataAt = t.first_data_at === null ? Number.NaN : parseTime(t.first_data_at);
        return { id: t.id, rank: t.rank ?? 0, firstDataAt: Number.isNaN(firstDataAt) ? null : firstDataAt };
      }),
      asOf,
    );
  });
  return { kind: 'read', coins: coins.rows.length, requests: tickers.requests + coins.requests };
}

/**
 * Before a run: where a second answer is due about slots that were missing, the list of coins is read again unless that was done
 * since the first. A list that cannot be had now is told, and leaves those slots unconfirmed.
 */
export async function refreshForAbsences(
  deps: CatalogueDeps,
): Promise<CatalogueRefresh | { readonly kind: 'failed'; readonly message: string }> {
  if (!(await absencesAwaitList(deps.sql, deps.clock.now()))) return { kind: 'fresh' };
  try {
    return await refreshCatalogue(deps, 0);
  } catch (error) {
    if (!(error instanceof UpstreamTrouble)) throw error;
    return { kind: 'failed', message: error.message };
  }
}

/** Coins are never deleted upstream, only become inactive: a list much shorter than the one before it is a broken one. */
const LEAST_SHARE = 0.9;
/** Of a list; more bad rows than that are not a few bad rows. */
const MOST_BAD_SHARE = 0.1;

/** A bad row costs itself, not the list. */
function readRows<S extends z.ZodType>(schema: S, body: unknown): Read<z.output<S>[]> {
  if (!Array.isArray(body)) return { ok: false, problem: `expected an array, got ${describeValue(body)}` };
  const rows: z.output<S>[] = [];
  let problem = '';
  for (const [i, value] of body.entries()) {
    const read = readRecord(schema, value);
    if (read.ok) rows.push(read.value);
    else problem ||= `[${i}].${read.problem}`;
  }
  return body.length - rows.length > body.length * MOST_BAD_SHARE ? { ok: false, problem } : { ok: true, value: rows };
}

function atLeast<T>(least: number, read: Read<T[]>): Read<T[]> {
  if (!read.ok || read.value.length >= least) return read;
  return { ok: false, problem: `${read.value.length} coins, of which ${Math.ceil(least)} at least were expected` };
}

type Reader<T> = (body: unknown) => Read<readonly T[]>;

async function readList<T>(
  { ask, sql, clock, signal }: CatalogueDeps,
  path: string,
  endpoint: string,
  read: Reader<T>,
): Promise<
  | { readonly kind: 'rows'; readonly rows: readonly T[]; readonly asOf: Instant; readonly requests: number }
  | Extract<Asked, { kind: 'held' }>
> {
  let requests = 0;
  for (let attempt = 1; ; attempt++) {
    const asked = await ask(
      { path },
      { spender: { class: 'scheduled', name: 'catalogue' }, record: { endpoint, attempt }, signal },
    );
    if (asked.kind === 'held') {
      // Short holds (a 429, a burst of errors) are waited out; long ones are the caller's to tell.
      if (asked.until - clock.now() > 60_000 || attempt > ATTEMPTS) return asked;
      await clock.sleep(asked.until - clock.now(), signal);
      continue;
    }
    requests += asked.requests;
    const { answer, record } = asked;
    let problem: string;
    if (answer.kind === 'answered') {
      const list = read(answer.body);
      if (list.ok && list.value.length > 0) {
        await createOriginCheck(sql)(answer.exchange).catch(async (error: Error) => {
          await recordFetch(sql, { ...record, outcome: 'malformed', message: error.message });
          throw error;
        });
        await recordFetch(sql, { ...record, outcome: 'stored', rows: list.value.length, stored: list.value.length });
        return { kind: 'rows', rows: list.value, asOf: answer.exchange.asOf, requests };
      }
      problem = list.ok ? `${path} answered an empty list` : list.problem;
      await recordFetch(sql, { ...record, outcome: 'malformed', message: problem });
    } else {
      problem = answer.message;
      if (answer.kind === 'refused' && answer.reason === 'forbidden')
        throw new Misconfigured(wrongKey(problem, asked.keySent));
      // A wall of the plan stands before no list of coins: a second one is no stray answer.
      const isStray = answer.kind === 'refused' && answer.reason === 'wall' && attempt === 1;
      if (answer.kind === 'refused' && !isStray) throw new Misconfigured(wrongAddress(`${path}: ${problem}`));
      if (answer.kind === 'malformed' && answer.astray) throw new Misconfigured(wrongAddress(`${path}: ${problem}`));
      if (answer.kind === 'limited' && answer.by === 'spent')
        return { kind: 'held', until: clock.now() + (asked.budgetLeft ? ASK_AGAIN_MS : 0), reason: 'spent' };
    }
    if (attempt >= (asked.ledAround ? 2 : ATTEMPTS)) {
      const hint = 'check CHANDLER_BASE_URL and the network, or run the command again later';
      throw new UpstreamTrouble(`the list of coins cannot be read (${path}): ${problem}; ${hint}`);
    }
    await clock.sleep(500 * 2 ** attempt, signal);
  }
}
