/** One request to the upstream, in full. */
import { formatBytes, formatCount, formatInstant } from '../../../core/format.ts';
import { type RequestRow, readRequest } from '../../../views/dashboard/requests.ts';
import { type Fact, Facts } from '../../parts/facts.tsx';
import { messagePage } from '../../parts/message-page.tsx';
import { Moment } from '../../parts/moment.tsx';
import type { ScreenInput, ScreenView } from '../../screen.ts';

export async function requestScreen({ deps: { sql }, now }: ScreenInput, id: number): Promise<ScreenView> {
  const row = await readRequest(sql, id);
  if (row === null) {
    const hint = (
      <>
        Chandler may have removed it because of its age. <a href="/ui/requests">The newest requests</a>
      </>
    );
    return messagePage(`There is no request ${id}`, hint, 404);
  }
  const title = `Request ${id}`;
  const body = (
    <div>
      <h1>{title}</h1>
      <Facts facts={factsOf(row, now)} />
      <p class="actions">
        <a class="button" href={`/ui/requests?before=${id + 1}`}>
          Requests up to this one
        </a>
        {row.subject !== null && (
          <a
            class="button"
            href={`/ui/requests?${row.interval === null ? 'about' : 'coin'}=${encodeURIComponent(row.subject)}`}
          >
            Requests about {row.subject}
          </a>
        )}
      </p>
    </div>
  );
  return { title, body };
}

function factsOf(row: RequestRow, now: number): readonly Fact[] {
  const { from, to, interval, quote, backfillId, message, bodySha256, status } = row;
  return [
    ['Sent', <Moment at={row.sentAt} now={now} />],
    ['As of', <Moment at={row.asOf} now={now} />],
    ['Account', <code>{row.accountId}</code>],
    ['Endpoint', row.endpoint],
    ['About', row.subject],
    ['Series', interval === null ? null : `${interval} ${quote}`],
    ['Span', from === null || to === null ? null : `${formatInstant(from)} … ${formatInstant(to)}`],
    ['Backfill', backfillId === null ? null : <a href={`/ui/backfills/${backfillId}`}>{backfillId}</a>],
    ['Attempt', String(row.attempt)],
    ['HTTP status', status === null ? 'no response arrived' : String(status)],
    ['Outcome', row.outcome],
    ['Message', message],
    ['Duration', `${formatCount(row.durationMs)} ms`],
    ['Body', `${formatBytes(row.bytes)}, ${formatCount(row.bytes)} bytes decoded`],
    ['SHA-256 of the body', bodySha256 === null ? 'no body' : <code>{bodySha256}</code>],
    ['Rows', formatCount(row.rows)],
    ['Stored', formatCount(row.stored)],
    ['Revised', formatCount(row.revised)],
    ['Quarantined', formatCount(row.quarantined)],
  ];
}
