/** What a failed request means for the item of the catalogue, for its kind, and for the run. */
import { DAY } from '../../core/interval.ts';
import { type ItemRefusal, recordItem } from '../../store/catalogue/catalogue-item.ts';
import { markDocumentsGone } from '../../store/catalogue/document.ts';
import { type Claim, findClaim, recordAnswer } from '../../store/work/second-opinion.ts';
import { CATALOGUE } from './catalogue-kinds.ts';
import {
  type CatalogueContext,
  type ItemOutcome,
  type ItemRequest,
  isBelieved,
  refusalOf,
  refusedUntil,
  waitAfter,
} from './catalogue-outcome.ts';
import type { Unusable } from './tool-registry.ts';

const SKIPPED: ItemOutcome = { kind: 'skipped' };
const SHORT_WAIT_MS = 60_000;
/** Longer messages are cut. */
const LONGEST_MESSAGE = 500;

/** Decides whether the interface failed, or only this call. If the interface failed, REST is used next. */
export async function unansweredByTool(
  catalogue: CatalogueContext,
  request: ItemRequest,
  answer: Unusable,
): Promise<ItemOutcome> {
  const { session, registry } = catalogue;
  const { retry } = request.context;
  switch (answer.kind) {
    case 'limited': {
      // The limits of another host are not those of the account. A short pause holds the run; a longer wait concerns only that host.
      const isShort = answer.by === 'rate' && (answer.retryAfterMs ?? 0) <= SHORT_WAIT_MS;
      if (session.tools!.sharesOrigin || isShort) break;
      await registry!.failed(answer, retry);
      return SKIPPED;
    }
    case 'refused':
      if (answer.reason === 'bad request' && (await registry!.relist(retry))) return SKIPPED;
      if (answer.reason !== 'unknown route') break;
      await registry!.failed(answer, retry);
      return SKIPPED;
    case 'unavailable':
    case 'malformed':
      if (await registry!.failed(answer, retry)) return SKIPPED;
  }
  return unanswered(catalogue, request, answer);
}

/** Settles a request without an answer; the request itself is already recorded. */
export async function unanswered(
  catalogue: CatalogueContext,
  request: ItemRequest,
  answer: Unusable,
): Promise<ItemOutcome> {
  const { sql, clock } = catalogue;
  const { item, context, sent } = request;
  switch (answer.kind) {
    case 'limited':
      if (sent.budgetLeft) return refused(catalogue, request, answer, 'history limit');
      // The ledger holds all requests; the next permit request returns until when.
      return { kind: 'held', until: clock.now(), reason: answer.by === 'rate' ? 'limited' : 'quota exhausted' };
    case 'refused': {
      const isOfItem = answer.reason === 'unknown id' || answer.reason === 'bad request';
      if (!isOfItem) return refused(catalogue, request, answer, answer.reason);
      const gone = { kind: CATALOGUE[request.kind].document, ids: [item.id], at: answer.exchange.asOf };
      if (answer.reason === 'unknown id') await context.retry(() => markDocumentsGone(sql, gone));
      await remember(catalogue, request, answer, answer.reason);
      return SKIPPED;
    }
    case 'unavailable':
    case 'malformed':
      await remember(catalogue, request, answer, answer.kind);
      return { kind: 'failed', message: answer.message };
  }
}

/** Records how the request of the item ended. The item is not requested again before `waitUntil`. */
function remember(
  { sql, clock }: CatalogueContext,
  { kind, item, context }: ItemRequest,
  { message, exchange }: Unusable,
  outcome: string,
  { leastWaitMs = 0, ...changes }: { readonly isTruncated?: boolean; readonly leastWaitMs?: number } = {},
): Promise<void> {
  const end = { kind, id: item.id, askedAt: exchange.sentAt, outcome, message, ...changes };
  const waitUntil = clock.now() + Math.max(leastWaitMs, waitAfter(outcome, item));
  return context.retry(() => recordItem(sql, { ...end, waitUntil }));
}

/**
 * The upstream refuses this item, which waits, and perhaps its whole kind, which then waits as well. One item proves little, so three different items
 * must be refused with no answer between. After that any refused item shows that the kind is still refused.
 */
async function refused(
  catalogue: CatalogueContext,
  request: ItemRequest,
  answer: Unusable,
  reason: ItemRefusal,
): Promise<ItemOutcome> {
  const { sql, clock, session } = catalogue;
  const { kind, item, context } = request;
  if (item.isTruncated) {
    // REST refuses the complete list. The beginning, which the tool returns, is better than nothing. REST is tried again after the next beginning.
    await remember(catalogue, request, answer, reason, { isTruncated: false, leastWaitMs: DAY });
    return SKIPPED;
  }
  await remember(catalogue, request, answer, reason);
  const ofKind = await context.retry(() => findClaim(sql, refusalOf(kind, session)));
  const isKindRefused = ofKind !== null && isBelieved(ofKind);
  const agreed = itemsOf(ofKind);
  // An item counts once. After that its refusals say nothing more about the kind.
  const isNew = item.tellsOfKind && !agreed.includes(item.id);
  if (!isNew && !isKindRefused) return SKIPPED;
  const { message, exchange } = answer;
  const received = { sentAt: exchange.sentAt, receivedAt: exchange.sentAt, ageMs: exchange.ageMs };
  const evidence = {
    reason,
    message: message.slice(0, LONGEST_MESSAGE),
    items: (isKindRefused ? agreed : [...agreed, item.id]).join('\n'),
  };
  const { claim } = await context.retry(() =>
    sql.begin((tx) => recordAnswer(tx, refusalOf(kind, session), received, () => ({ says: 'agrees', evidence }))),
  );
  const now = clock.now();
  // The wait may already be over.
  return (claim && refusedUntil(claim, now)) ?? { kind: 'held', until: now, reason: message };
}

/** The items that agreed so far. */
function itemsOf(claim: Claim | null): readonly string[] {
  const items = claim?.evidence?.items;
  return typeof items === 'string' ? items.split('\n') : [];
}
