/** Validates and stores an answer about the catalogue, in one transaction. A list that has lost many rows needs a second answer first. */

import { judgeLength } from '../../core/second-opinion.ts';
import { type QuarantinedRecord, recordStored } from '../../store/candle/quarantine.ts';
import { type ItemEnd, recordItem } from '../../store/catalogue/catalogue-item.ts';
import { writeDocuments } from '../../store/catalogue/document.ts';
import { findFetch, recordFetch } from '../../store/work/fetch.ts';
import { dropClaim, recordAnswer } from '../../store/work/second-opinion.ts';
import type { Answer } from '../../upstream/answer.ts';
import type { Validated } from '../answer/record-list.ts';
import { findWrongInstant } from '../snapshot/validate-snapshot.ts';
import { CATALOGUE } from './catalogue-kinds.ts';
import {
  type CatalogueContext,
  type ItemOutcome,
  type ItemRequest,
  refusalOf,
  shortListOf,
  waitAfter,
} from './catalogue-outcome.ts';
import type { CatalogueFacts } from './validate-catalogue.ts';

type Answered = Extract<Answer, { kind: 'answered' }>;

type SettleOptions = {
  /** The limit of the request; null: none. */
  readonly limit: number | null;
  readonly isOfTool: boolean;
};

export async function settleAnswer(
  catalogue: CatalogueContext,
  request: ItemRequest,
  answer: Answered,
  { limit, isOfTool }: SettleOptions,
): Promise<ItemOutcome> {
  const { sql, clock, checkOrigin } = catalogue;
  const { kind, item, context, sent } = request;
  const { retry } = context;
  const { exchange } = answer;
  const { record } = sent;
  const plan = CATALOGUE[kind];
  const end = { kind, id: item.id, askedAt: exchange.sentAt };
  /** Uses nothing of the answer, and records the request and its outcome together. */
  const reject = (outcome: string, rows: number, message: string, waitMs: number) =>
    retry(async (again) => {
      if (again && (await findFetch(sql, record)) !== null) return;
      await sql.begin(async (tx) => {
        await recordFetch(tx, { ...record, outcome, rows, message });
        await recordItem(tx, { ...end, outcome, message, waitUntil: clock.now() + waitMs });
      });
    });

  const { id } = item;
  const { body, text = '' } = answer;
  const misdated = findWrongInstant(exchange);
  const validated: Validated<CatalogueFacts> =
    misdated === null
      ? plan.check({ id, body, text, latest: exchange.latest, limit })
      : { ok: false, problem: misdated };
  if (!validated.ok) {
    await reject('malformed', 0, validated.problem, waitAfter('malformed', item));
    return { kind: 'failed', message: `the answer about "${id}" cannot be used: ${validated.problem}` };
  }
  const { value, rows, quarantined } = validated;
  const isTruncated = value.isTruncated;
  const least = Math.ceil(item.rows * (plan.leastShare ?? 0));
  if (plan.leastShare !== null && !isTruncated && rows < least) {
    const received = { sentAt: exchange.sentAt, ageMs: exchange.ageMs, receivedAt: clock.now() };
    const opinion = await retry(() =>
      sql.begin((tx) =>
        recordAnswer(tx, shortListOf(kind, id), received, (before) => judgeLength(before?.evidence?.rows, rows)),
      ),
    );
    if (opinion.kind === 'waiting') {
      const waitMs = opinion.claim.retryAt - clock.now();
      await reject('unconfirmed', rows, `${rows} rows, of which ${least} at least were expected`, waitMs);
      return { kind: 'skipped' };
    }
  }
  const setting = isOfTool ? 'CHANDLER_RPC_URL' : 'CHANDLER_BASE_URL';
  await checkOrigin(exchange, { ...record, rows }, { retry, setting });
  const stored: ItemEnd = isTruncated
    ? { ...end, outcome: 'cut', isTruncated: true, waitUntil: null, message: null }
    : { ...end, outcome: 'stored', rows, waitUntil: null, message: null };
  await retry(async (again) => {
    // If the connection was cut during the commit, the answer may already be stored.
    if (again && (await findFetch(sql, record)) !== null) return;
    await commit(catalogue, request, { value, quarantined, rows, stored, at: exchange.asOf });
  });
  return { kind: 'stored' };
}

type Commit = {
  readonly value: CatalogueFacts;
  readonly quarantined: readonly QuarantinedRecord[];
  readonly rows: number;
  readonly stored: ItemEnd;
  readonly at: number;
};

async function commit(
  catalogue: CatalogueContext,
  { kind, item, sent }: ItemRequest,
  { value, quarantined, rows, stored, at }: Commit,
) {
  const { sql, session } = catalogue;
  const { document, leastShare } = CATALOGUE[kind];
  await sql.begin(async (tx) => {
    const youngest = await writeDocuments(tx, {
      kind: document,
      documents: value.documents,
      at,
      isTruncated: value.isTruncated,
    });
    // An answer that is older than the stored one is not written: then all its documents are older.
    const isYoungest = value.documents.length === 0 || youngest.size > 0;
    if (isYoungest) await value.write(tx, at);
    const writtenRows = isYoungest ? rows - quarantined.length : 0;
    await recordStored(tx, sent.record, { rows, stored: writtenRows, quarantined });
    await recordItem(tx, stored);
    await dropClaim(tx, refusalOf(kind, session));
    // The list is plausible again, or the shorter list is now a fact. An item whose last answer was stored has no such claim.
    if (leastShare !== null && item.outcome !== 'stored') await dropClaim(tx, shortListOf(kind, item.id));
  });
}
