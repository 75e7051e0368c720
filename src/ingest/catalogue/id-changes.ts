/**
 * Reads from the upstream's changelog which coins got a new id: newest first, a hundred per page, one request per page. Usually the first page has
 * everything new. The next run of freshness moves the series to the new id (`apply-track-rules.ts`).
 */
import { type Clock, MOST_SKEW_MS } from '../../clock.ts';
import { ID_CHANGES_PATH } from '../../contract/interface/paths.ts';
import { idChangesSchema } from '../../contract/record/catalogue.ts';
import { readRecord } from '../../contract/record/records.ts';
import { parseTime } from '../../contract/time.ts';
import type { QuarantinedRecord } from '../../store/candle/quarantine.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { storeSnapshot } from '../../store/snapshot/snapshot.ts';
import { type Rename, recordRenames, renamesReadUntil } from '../../store/upkeep/rename.ts';
import { recordFetchOnce } from '../../store/work/fetch.ts';
import type { Exchange } from '../../upstream/answer.ts';
import { UpstreamError } from '../outcome.ts';
import { createOriginCheck } from '../request/origin.ts';
import type { OutageRetry } from '../request/outage-retry.ts';
import type { SendRequest } from '../request/send-request.ts';
import { endRefusedRecently, endUnanswered, type RunOutcome } from '../schedule-run.ts';

const PER_PAGE = 100;
/** Thousands of renames since the last run would mean a broken answer. */
const MOST_PAGES = 20;
const ENDPOINT = 'changelog';

/** Stores the new renames after all pages were read: if a page fails, the next run reads all of them. @throws UpstreamError, ConfigurationError */
export async function readIdChanges(deps: {
  readonly sendRequest: SendRequest;
  readonly sql: Sql;
  readonly clock: Clock;
  readonly accountId: string;
  readonly signal: AbortSignal;
  /** Waits for a database that is unavailable. */
  readonly retry: OutageRetry;
}): Promise<RunOutcome> {
  const { sendRequest, sql, signal, retry } = deps;
  const checkOrigin = createOriginCheck(sql);
  const since = await retry(() => renamesReadUntil(sql));
  // Without a list of coins there is nothing to rename.
  if (since === null) return { kind: 'done' };
  const asking = { endpoint: ENDPOINT, accountId: deps.accountId };
  const refused = await endRefusedRecently(ID_CHANGES_PATH, { ...deps, record: asking });
  if (refused !== null) return refused;
  const renames: Rename[] = [];
  for (let page = 1; page <= MOST_PAGES; page++) {
    const sent = await sendRequest(
      { path: ID_CHANGES_PATH, query: { page: String(page) } },
      { spender: { class: 'scheduled', name: 'renames' }, record: { endpoint: ENDPOINT }, signal, retry },
    );
    if (sent.kind === 'held') return sent;
    const { answer, record } = sent;
    if (answer.kind !== 'answered') return endUnanswered(ID_CHANGES_PATH, answer, { ...deps, record });
    const read = readRecord(idChangesSchema, answer.body);
    if (!read.ok) {
      const { problem } = read;
      await retry((again) => recordFetchOnce(sql, { ...record, outcome: 'malformed', message: problem }, again));
      throw new UpstreamError(`${ID_CHANGES_PATH}: ${problem}`, problem);
    }
    await checkOrigin(answer.exchange, record, { retry });
    const { changes, quarantined } = validate(read.value, answer.exchange);
    const rows = read.value.length;
    await retry((again) => storeSnapshot(sql, { ...record, rows }, quarantined, async () => changes.length, again));
    // Older renames are stored as well, and renames of coins that the warehouse does not have: Chandler serves the changelog as it received it.
    renames.push(...changes);
    if (read.value.length < PER_PAGE || changes.some(({ at }) => at < since)) break;
  }
  if (renames.length > 0) await retry(() => sql.begin((tx) => recordRenames(tx, renames, 'changelog')));
  return { kind: 'done' };
}

type Row = Readonly<Record<'currency_id' | 'old_id' | 'new_id' | 'changed_at', string>>;

function validate(rows: readonly Row[], { latest, asOf }: Pick<Exchange, 'latest' | 'asOf'>) {
  const changes: Rename[] = [];
  const quarantined: QuarantinedRecord[] = [];
  for (const row of rows) {
    const at = parseTime(row.changed_at);
    const reason = Number.isNaN(at)
      ? 'changed_at is not a time'
      : at > latest + MOST_SKEW_MS
        ? 'changed in the future'
        : null;
    if (reason !== null) quarantined.push({ id: row.old_id, reason, row });
    else changes.push({ oldId: row.old_id, newId: row.new_id, at, currencyId: row.currency_id, seenAt: asOf });
  }
  return { changes, quarantined };
}
