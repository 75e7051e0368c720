/** What `chandler doctor --online` asks of the upstream: one question, counted like every other. */
import type { App } from '../../app.ts';
import { wrongAddress, wrongKey } from '../../ingest/request/configuration-errors.ts';
import { openIngestion } from '../../ingestion.ts';
import { recordFetch } from '../../store/work/fetch.ts';
import { formatInstant } from '../output/format.ts';
import { type Check, fail, failWith, ok, warn } from './check.ts';

/** With a key asks the account endpoint (is the key right, which plan?), else the global overview. */
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
        return [warn('upstream', `${host} does not tell about accounts`, 'set CHANDLER_PLAN to the plan of the key')];
      }
      return [ok('upstream', `${host} knows the key: plan ${told.info.plan}`)];
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
  return warn('upstream', `not asked: the quota says no (${reason})`, `ask again after ${formatInstant(until)}`);
}
