/** What a failed request means for the item of the catalogue, for its kind, and for the run. */
import { WHOLE_BOUND } from '../../core/backoff.ts';
import { recordItem } from '../../store/catalogue/catalogue-item.ts';
import { recordCatalogueRefusal } from '../../store/catalogue/catalogue-refusal.ts';
import { markDocumentsGone } from '../../store/catalogue/document.ts';
import { CATALOGUE } from './catalogue-kinds.ts';
import {
  type CatalogueContext,
  failureBackoff,
  type ItemOutcome,
  type ItemRequest,
  refusedUntil,
  unknownBackoff,
} from './catalogue-outcome.ts';
import type { Unusable } from './tool-registry.ts';

/** Did the interface fail, or only this call? If it was the interface, REST is used next. */
export async function unansweredByTool(
  catalogue: CatalogueContext,
  request: ItemRequest,
  answer: Unusable,
): Promise<ItemOutcome> {
  const { session, registry } = catalogue;
  const { retry } = request.context;
  const { sharesOrigin } = session.tools!;
  switch (answer.kind) {
    case 'limited':
      // The limits of another host are not those of the account: a short pause holds the run, a longer wait concerns that host only.
      if (sharesOrigin) return unanswered(catalogue, request, answer);
      if (answer.by === 'rate' && (answer.retryAfterMs ?? 0) <= SHORT_WAIT_MS)
        return unanswered(catalogue, request, answer);
      await registry!.failed(answer, retry);
      return { kind: 'skipped' };
    case 'refused':
      if (answer.reason === 'bad request' && (await registry!.relist(retry))) return { kind: 'skipped' };
      if (answer.reason !== 'unknown route') return unanswered(catalogue, request, answer);
      await registry!.failed(answer, retry);
      return { kind: 'skipped' };
    case 'unavailable':
    case 'malformed': {
      const isClosed = await registry!.failed(answer, retry);
      return isClosed ? { kind: 'skipped' } : unanswered(catalogue, request, answer);
    }
  }
}

const SHORT_WAIT_MS = 60_000;

/** The request itself is recorded already. */
export async function unanswered(
  catalogue: CatalogueContext,
  request: ItemRequest,
  answer: Unusable,
): Promise<ItemOutcome> {
  const { sql, clock, session } = catalogue;
  const { kind, item, context, asked } = request;
  const { retry } = context;
  const { message } = answer;
  const { sentAt } = answer.exchange;
  const remember = (outcome: string, waitMs: number, isCut?: boolean) =>
    retry(() =>
      recordItem(sql, {
        kind,
        id: item.id,
        askedAt: sentAt,
        outcome,
        waitUntil: clock.now() + waitMs,
        message,
        ...(isCut === undefined ? {} : { isCut }),
      }),
    );
  const inARow = (outcome: string) => (item.outcome === outcome ? item.times : 0);
  const refused = async (reason: string): Promise<ItemOutcome> => {
    if (item.isCut) {
      // REST refuses the whole list: the beginning, which the tool returns, is better than nothing.
      await remember(reason, unknownBackoff(inARow(reason), WHOLE_BOUND), false);
      return { kind: 'skipped' };
    }
    const { accountId, plan } = session;
    const refusal = { kind, reason, message, refusedAt: sentAt };
    const times = await retry(() =>
      recordCatalogueRefusal(sql, { accountId, plan: plan.name, kind, reason, message, at: sentAt }),
    );
    // The wait may be over already.
    return refusedUntil({ ...refusal, times }, clock.now()) ?? { kind: 'held', until: clock.now(), reason: message };
  };
  switch (answer.kind) {
    case 'limited':
      if (asked.budgetLeft) return refused('wall');
      // The ledger holds all requests; the next permit says until when.
      return { kind: 'held', until: clock.now(), reason: answer.by === 'rate' ? 'limited' : 'quota exhausted' };
    case 'refused':
      if (answer.reason === 'unknown id') {
        const { document } = CATALOGUE[kind];
        await retry(() => markDocumentsGone(sql, { kind: document, ids: [item.id], at: answer.exchange.asOf }));
        await remember(answer.reason, unknownBackoff(inARow(answer.reason), WHOLE_BOUND));
        return { kind: 'skipped' };
      }
      if (answer.reason === 'bad request') {
        await remember(answer.reason, unknownBackoff(inARow(answer.reason), WHOLE_BOUND));
        return { kind: 'skipped' };
      }
      return refused(answer.reason);
    case 'unavailable':
    case 'malformed':
      await remember(answer.kind, failureBackoff(inARow(answer.kind), WHOLE_BOUND));
      return { kind: 'failed', message };
  }
}
