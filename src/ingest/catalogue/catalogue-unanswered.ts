/** What it means for one thing of the catalogue, for its kind and for the run, that a question was not answered. */
import { WHOLE_BOUND } from '../../core/backoff.ts';
import { recordItem } from '../../store/catalogue/catalogue-item.ts';
import { recordCatalogueRefusal } from '../../store/catalogue/catalogue-refusal.ts';
import { markDocumentsGone } from '../../store/catalogue/document.ts';
import { CATALOGUE } from './catalogue-kinds.ts';
import {
  type Asking,
  failureBackoff,
  type ItemOutcome,
  offUntil,
  type Parts,
  unknownBackoff,
} from './catalogue-outcome.ts';
import type { Unusable } from './tool-registry.ts';

/** The interface, or this one call? Where it is the interface, REST is asked next. */
export async function unansweredByTool(parts: Parts, asking: Asking, answer: Unusable): Promise<ItemOutcome> {
  const { session, book } = parts;
  const { retry } = asking.context;
  const { sharesOrigin } = session.tools!;
  switch (answer.kind) {
    case 'limited':
      // Another host's limits are not those of the account: a pause is heeded, a longer wait is that host's alone.
      if (sharesOrigin) return unanswered(parts, asking, answer);
      if (answer.by === 'pace' && (answer.retryAfterMs ?? 0) <= SHORT_WAIT_MS) return unanswered(parts, asking, answer);
      await book!.failed(answer, retry);
      return { kind: 'passed' };
    case 'refused':
      if (answer.reason === 'bad request' && (await book!.doubted(retry))) return { kind: 'passed' };
      if (answer.reason !== 'unknown route') return unanswered(parts, asking, answer);
      await book!.failed(answer, retry);
      return { kind: 'passed' };
    case 'unavailable':
    case 'malformed': {
      const isClosed = await book!.failed(answer, retry);
      return isClosed ? { kind: 'passed' } : unanswered(parts, asking, answer);
    }
  }
}

const SHORT_WAIT_MS = 60_000;

/** Recorded already; what it means for this thing, for its kind, and for the run. */
export async function unanswered(parts: Parts, asking: Asking, answer: Unusable): Promise<ItemOutcome> {
  const { sql, clock, session } = parts;
  const { kind, item, context, asked } = asking;
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
      // REST does not give the whole of it: what the tool gives is better than nothing.
      await remember(reason, unknownBackoff(inARow(reason), WHOLE_BOUND), false);
      return { kind: 'passed' };
    }
    const { accountId, plan } = session;
    const refusal = { kind, reason, message, refusedAt: sentAt };
    const times = await retry(() =>
      recordCatalogueRefusal(sql, { accountId, plan: plan.name, kind, reason, message, at: sentAt }),
    );
    // It may have taken so long that it is over already.
    return offUntil({ ...refusal, times }, clock.now()) ?? { kind: 'held', until: clock.now(), reason: message };
  };
  switch (answer.kind) {
    case 'limited':
      if (asked.budgetLeft) return refused('wall');
      // The ledger makes everybody wait; the next take says until when.
      return { kind: 'held', until: clock.now(), reason: answer.by === 'pace' ? 'limited' : 'spent' };
    case 'refused':
      if (answer.reason === 'unknown id') {
        const { document } = CATALOGUE[kind];
        await retry(() => markDocumentsGone(sql, { kind: document, ids: [item.id], at: answer.exchange.asOf }));
        await remember(answer.reason, unknownBackoff(inARow(answer.reason), WHOLE_BOUND));
        return { kind: 'passed' };
      }
      if (answer.reason === 'bad request') {
        await remember(answer.reason, unknownBackoff(inARow(answer.reason), WHOLE_BOUND));
        return { kind: 'passed' };
      }
      return refused(answer.reason);
    case 'unavailable':
    case 'malformed':
      await remember(answer.kind, failureBackoff(inARow(answer.kind), WHOLE_BOUND));
      return { kind: 'trouble', message };
  }
}
