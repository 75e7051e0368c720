/** Checks the upstream with one request, which is counted like every other request. */
import type { App } from '../../app.ts';
import { formatInstant } from '../../core/format.ts';
import { wrongAddress, wrongKey } from '../../ingest/request/configuration-errors.ts';
import { openIngestion } from '../../ingestion.ts';
import { recordFetch } from '../../store/work/fetch.ts';
import { waitingFor } from '../output/wait-reasons.ts';
import { type Check, fail, failWith, ok, warn } from './check.ts';

/** With a key it requests the account (is the key right, which plan?), else the global overview. */
export async function checkUpstream(app: App, signal: AbortSignal): Promise<Check[]> {
  const { host } = new URL(app.config.baseUrl);
  const ingestion = await openIngestion(app, { signal, asksAnyway: true });
  try {
    const { session } = ingestion;
    if (app.config.apiKey !== null) {
      const told = await session.check();
      if (told.kind === 'held') return [held(told.until, told.reason)];
      if (told.kind === 'unanswered') return [unanswered(host, told.message)];
      if (told.kind === 'unknown') {
        return [warn('upstream', `${host} has no account endpoint`, 'set CHANDLER_PLAN to the plan of the key')];
      }
      return [ok('upstream', `${host} accepts the key: plan ${told.info.plan}`)];
    }
    const spender = { class: 'scheduled', name: 'doctor' } as const;
    const asked = await session.sendRequest({ path: '/global' }, { spender, record: { endpoint: 'global' }, signal });
    if (asked.kind === 'held') return [held(asked.until, asked.reason)];
    const { answer, record } = asked;
    if (answer.kind === 'answered') {
      await recordFetch(app.database.sql, { ...record, outcome: 'stored' });
      return [ok('upstream', `${host} answered in ${Math.round(answer.exchange.durationMs)} ms`)];
    }
    if (answer.kind === 'unavailable' || answer.kind === 'limited') return [unanswered(host, answer.message)];
    if (answer.kind === 'refused' && answer.reason === 'forbidden') {
      return [failWith('upstream', wrongKey(answer.message, asked.keySent))];
    }
    return [failWith('upstream', wrongAddress(answer.message))];
  } finally {
    await ingestion.close();
  }
}

function unanswered(host: string, message: string): Check {
  return fail('upstream', `${host}: ${message}`, 'try again later, or check the network and CHANDLER_BASE_URL');
}

function held(until: number, reason: string): Check {
  return warn('upstream', `no request was sent: ${waitingFor(reason)}`, `try again after ${formatInstant(until)}`);
}
