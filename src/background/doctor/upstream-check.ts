/** Checks the upstream with one request, or with a few when one is not enough. The ledger counts each of them. */
import type { App } from '../../app.ts';
import { formatInstant } from '../../core/format.ts';
import { wrongAddress, wrongKey } from '../../ingest/request/configuration-errors.ts';
import type { Session } from '../../ingest/session.ts';
import { withIngestion } from '../../ingestion.ts';
import { recordFetch } from '../../store/work/fetch.ts';
import { waitingFor } from '../operator/wait-reasons.ts';
import { type Check, fail, failWith, ok, warn } from './check.ts';

/** With a key it requests the account (is the key right, which plan?), otherwise the global overview. */
export function checkUpstream(app: App, signal: AbortSignal): Promise<Check> {
  const { host } = new URL(app.config.baseUrl);
  return withIngestion(app, { signal, ignoresKeyRefusal: true }, ({ session }) =>
    app.config.apiKey === null
      ? requestOverview(app, session, host, signal)
      : requestAccount(session, { host, plan: app.config.plan }, () => requestOverview(app, session, host, signal)),
  );
}

/** `overview` checks the address itself: when the upstream has nothing at the account's path, the whole address may be wrong. */
async function requestAccount(
  session: Session,
  { host, plan }: { readonly host: string; readonly plan: string | null },
  overview: () => Promise<Check>,
): Promise<Check> {
  const account = await session.check();
  if (account.kind === 'held') return held(account.until, account.reason);
  if (account.kind === 'unanswered') return unavailable(host, account.message);
  if (account.kind === 'unknown') {
    const other = await overview();
    if (other.state === 'fail') return other;
    return warn('upstream', `${host} has no account endpoint`, 'set CHANDLER_PLAN to the plan of the key');
  }
  const found = `${host} accepts the key: plan ${account.info.plan}`;
  if (plan === null || account.plan === null || account.plan === plan) return ok('upstream', found);
  const fix = 'leave out CHANDLER_PLAN: Chandler then uses the plan of the key, also after it changes';
  return warn('upstream', `${found}, but CHANDLER_PLAN is ${plan}`, fix);
}

async function requestOverview(app: App, session: Session, host: string, signal: AbortSignal): Promise<Check> {
  const spender = { class: 'scheduled', name: 'doctor' } as const;
  const sent = await session.sendRequest({ path: '/global' }, { spender, record: { endpoint: 'global' }, signal });
  if (sent.kind === 'held') return held(sent.until, sent.reason);
  const { answer, record } = sent;
  if (answer.kind === 'answered') {
    await recordFetch(app.database.sql, { ...record, outcome: 'stored' });
    return ok('upstream', `${host} answered in ${Math.round(answer.exchange.durationMs)} ms`);
  }
  if (answer.kind === 'unavailable' || answer.kind === 'limited') return unavailable(host, answer.message);
  if (answer.kind === 'refused' && answer.reason === 'forbidden') {
    return failWith('upstream', wrongKey(answer.message, sent.keySent));
  }
  return failWith('upstream', wrongAddress(answer.message));
}

function unavailable(host: string, message: string): Check {
  return fail('upstream', `${host}: ${message}`, 'try again later, or check the network and CHANDLER_BASE_URL');
}

function held(until: number, reason: string): Check {
  return warn('upstream', `no request was sent: ${waitingFor(reason)}`, `try again after ${formatInstant(until)}`);
}
