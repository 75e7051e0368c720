/** What an answer about the catalogue becomes: checked, doubted where it says that much is gone, and written in one transaction. */
import { WHOLE_BOUND } from '../../core/backoff.ts';
import { quarantineRecords, type SetAsideRecord } from '../../store/candle/quarantine.ts';
import { type ItemEnd, recordItem } from '../../store/catalogue/catalogue-item.ts';
import { forgetCatalogueRefusal } from '../../store/catalogue/catalogue-refusal.ts';
import { writeDocuments } from '../../store/catalogue/document.ts';
import { findFetch, recordFetch, recordFetchOnce } from '../../store/work/fetch.ts';
import type { Answer } from '../../upstream/answer.ts';
import type { Validated } from '../answer/record-list.ts';
import { ASK_AGAIN_MS } from '../answer/second-opinion.ts';
import { ConfigurationError } from '../outcome.ts';
import { misdate } from '../snapshot/validate-snapshot.ts';
import { CATALOGUE } from './catalogue-kinds.ts';
import { type Asking, failureBackoff, type ItemOutcome, type Parts } from './catalogue-outcome.ts';
import type { CatalogueFacts } from './validate-catalogue.ts';

type Answered = Extract<Answer, { kind: 'answered' }>;

export type SettleOptions = {
  /** As many rows were asked for; null: all. */
  readonly limit: number | null;
  readonly isOfTool: boolean;
};

export async function settleAnswer(
  parts: Parts,
  asking: Asking,
  answer: Answered,
  { limit, isOfTool }: SettleOptions,
): Promise<ItemOutcome> {
  const { sql, clock, checkOrigin } = parts;
  const { kind, item, context, asked } = asking;
  const { retry } = context;
  const { exchange } = answer;
  const { record } = asked;
  const plan = CATALOGUE[kind];
  const end = { kind, id: item.id, askedAt: exchange.sentAt };
  /** Nothing of it is used: the request and what came of it are written down together. */
  const reject = (outcome: string, rows: number, message: string, waitMs: number) =>
    retry(async (again) => {
      if (again && (await findFetch(sql, record)) !== null) return;
      await sql.begin(async (tx) => {
        await recordFetch(tx, { ...record, outcome, rows, message });
        await recordItem(tx, { ...end, outcome, message, waitUntil: clock.now() + waitMs });
      });
    });
  const inARow = (outcome: string) => (item.outcome === outcome ? item.times : 0);

  const { id } = item;
  const { body, text = '' } = answer;
  const misdated = misdate(exchange);
  const validated: Validated<CatalogueFacts> =
    misdated === null
      ? plan.check({ id, body, text, latest: exchange.latest, limit })
      : { ok: false, problem: misdated };
  if (!validated.ok) {
    await reject('malformed', 0, validated.problem, failureBackoff(inARow('malformed'), WHOLE_BOUND));
    return { kind: 'trouble', message: `the answer about "${id}" cannot be used: ${validated.problem}` };
  }
  const { value, rows, setAside } = validated;
  const isCut = value.isCut;
  const least = Math.ceil(item.rows * (plan.leastShare ?? 0));
  if (plan.leastShare !== null && !isCut && rows < least && item.outcome !== 'doubted') {
    await reject('doubted', rows, `${rows} rows, of which ${least} at least were expected`, ASK_AGAIN_MS);
    return { kind: 'passed' };
  }
  await retry(() => checkOrigin(exchange)).catch(async (error: Error) => {
    if (!(error instanceof ConfigurationError)) throw error;
    const message = isOfTool ? error.message.replace('CHANDLER_BASE_URL', 'CHANDLER_RPC_URL') : error.message;
    await retry((again) => recordFetchOnce(sql, { ...record, outcome: 'malformed', rows, message }, again));
    throw new ConfigurationError(message);
  });
  const stored: ItemEnd = isCut
    ? { ...end, outcome: 'cut', isCut: true, waitUntil: null, message: null }
    : { ...end, outcome: 'stored', rows, waitUntil: null, message: null };
  await retry(async (again) => {
    // Cut off while it was committed, it may be stored already.
    if (again && (await findFetch(sql, record)) !== null) return;
    await commit(parts, asking, { value, setAside, rows, stored, at: exchange.asOf });
  });
  return { kind: 'stored' };
}

type Commit = {
  readonly value: CatalogueFacts;
  readonly setAside: readonly SetAsideRecord[];
  readonly rows: number;
  readonly stored: ItemEnd;
  readonly at: number;
};

async function commit(parts: Parts, { kind, asked }: Asking, { value, setAside, rows, stored, at }: Commit) {
  const { sql, session } = parts;
  const { accountId, plan } = session;
  const { document } = CATALOGUE[kind];
  await sql.begin(async (tx) => {
    const youngest = await writeDocuments(tx, { kind: document, documents: value.documents, at, isCut: value.isCut });
    // Of an older answer than the one that is there nothing is written: all its documents are older then.
    const isYoungest = value.documents.length === 0 || youngest.size > 0;
    if (isYoungest) await value.write(tx, at);
    const counts = { rows, stored: isYoungest ? rows - setAside.length : 0, setAside: setAside.length };
    const fetchId = await recordFetch(tx, { ...asked.record, outcome: 'stored', ...counts });
    await quarantineRecords(tx, kind, setAside, { fetchId, seenAt: at });
    await recordItem(tx, stored);
    await forgetCatalogueRefusal(tx, { accountId, plan: plan.name, kind });
  });
}
