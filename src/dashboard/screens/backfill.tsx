/** One backfill: why it does not advance, where its chunks are, what it cost, when it ends, and what failed last. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import {
  formatCount,
  formatCounted,
  formatDay,
  formatInstant,
  formatPercent,
  formatRelative,
  formatSeries,
} from '../../core/format.ts';
import type { BackfillDetails } from '../../views/backfills/backfill-details.ts';
import { describeLeft } from '../../views/backfills/backfills.ts';
import { MOST_SEARCHED } from '../../views/dashboard/requests.ts';
import { type Fact, Facts } from '../parts/facts.tsx';
import { messagePage } from '../parts/message-page.tsx';
import { Ago, Moment } from '../parts/moment.tsx';
import type { BackfillReport } from '../parts/reports.ts';
import { Table } from '../parts/table.tsx';
import { BadAddress, type ScreenInput, type ScreenView } from '../screen.ts';
import { Changes, endOf } from './backfills.tsx';

export async function backfillScreen({ deps, id, now }: ScreenInput): Promise<ScreenView> {
  if (!/^[1-9]\d{0,8}$/.test(id))
    throw new BadAddress(
      `The number of a backfill must be a whole number above 0, like 12, got ${JSON.stringify(id)}.`,
    );
  const report = await deps.readBackfill(Number(id));
  if (report === null)
    return messagePage(`There is no backfill ${id}`, <a href="/ui/backfills?all=true">All backfills</a>, 404);
  const title = `Backfill ${id}`;
  const { row, failures } = report.details;
  const span = row.from === null || row.to === null ? '' : `, ${formatDay(row.from)} … ${formatDay(row.to)}`;
  const coins = row.coins === null ? '' : `, ${formatCounted(row.coins, 'coin')}`;
  const body = (
    <div>
      <h1>{title}</h1>
      <p>{`${formatSeries(row)}${span}${coins}`}</p>
      <section id="backfill" data-live>
        <div class={`notice ${row.state === 'failed' ? 'bad' : ''}`}>
          {report.reasons.map((reason) => (
            <p>{reason}</p>
          ))}
        </div>
        <p>
          <Changes row={row} />
        </p>
        <Progress details={report.details} />
        <Facts facts={factsOf(report.details, now)} />
        <Waits report={report} now={now} />
        <h2>Last failed requests</h2>
        <Table
          caption={`Among the last ${formatCount(MOST_SEARCHED)} requests of this warehouse, sent before the backfill ended; newest first`}
          rows={failures}
          empty="No request failed lately."
          columns={[
            { title: 'When', cell: ({ sentAt }) => <Ago at={sentAt} now={now} /> },
            { title: 'Coin', cell: ({ coinId }) => coinId ?? '' },
            { title: 'Span', cell: ({ from, to }) => spanOf(from, to) },
            { title: 'Attempt', isNumber: true, cell: ({ attempt }) => attempt },
            { title: 'Status', isNumber: true, cell: ({ status }) => status ?? '' },
            { title: 'Outcome', cell: ({ outcome }) => outcome },
            { title: 'Answer', cell: ({ message }) => message ?? '' },
          ]}
        />
      </section>
      <p>
        <a href={`/ui/requests?backfill=${id}`}>Requests of this backfill</a>
      </p>
    </div>
  );
  return { title, body };
}

const Progress: FC<{ readonly details: BackfillDetails }> = ({ details: { row } }) =>
  row.progress !== null && (
    <p>
      <progress max="1" value={String(row.progress)} aria-label="Progress" /> {formatPercent(row.progress, 1)}
    </p>
  );

function factsOf({ row, chunks }: BackfillDetails, now: Instant): readonly Fact[] {
  const { owner, requestedBy, heartbeatAt, spent, plannedRequests, finishChange, finishChangedAt } = row;
  const by = row.state === 'running' ? ` by ${owner}, last heartbeat ${formatRelative(heartbeatAt ?? now, now)}` : '';
  const said = describeLeft(row);
  const left = said === null ? '' : row.leftRequests! > 0 ? `, ${said} left` : `; left: ${said}`;
  const over =
    plannedRequests > 0 && spent > plannedRequests
      ? `, ${formatCount(spent - plannedRequests)} more than the minimum`
      : '';
  return [
    ['State', `${row.state}${by}`],
    ['Priority', String(row.priority)],
    ['Requested', `${formatInstant(row.requestedAt)}${requestedBy === null ? '' : ` by ${requestedBy}`}`],
    ['Started', row.startedAt === null ? null : formatInstant(row.startedAt)],
    ['Requests', `${formatCount(spent)} sent of at least ${formatCount(plannedRequests)} planned${over}${left}`],
    ['Stored', formatCounted(row.stored, 'row')],
    [row.finishedAt === null ? 'Ends' : 'Ended', endOf(row, now)],
    [
      'Finish time changed',
      finishChange === null || finishChangedAt === null
        ? null
        : `${formatRelative(finishChangedAt, now)}: ${finishChange}`,
    ],
    [
      'Chunks',
      chunks === null
        ? null
        : `${formatCount(chunks.inProgress)} in progress, ${formatCount(chunks.queued)} queued, ${formatCount(chunks.retrying)} waiting for a retry`,
    ],
    ['Waits until', row.waitUntil === null || row.waitUntil <= now ? null : <Moment at={row.waitUntil} now={now} />],
    ['Retries', retriesOf(row, now)],
  ];
}

function retriesOf({ retrying, retryFrom, retryTo }: BackfillDetails['row'], now: Instant): string | null {
  if (retrying === 0) return null;
  const until = (at: Instant | null) => (at === null ? '' : formatInstant(Math.max(now, at)));
  const last = retryTo === null || retryTo === retryFrom ? '' : `, the last one at ${until(retryTo)}`;
  return `${formatCounted(retrying, 'chunk')}${retryFrom === null ? '' : `, the first one at ${until(retryFrom)}`}${last}`;
}

const Waits: FC<{ readonly report: BackfillReport; readonly now: Instant }> = ({ report, now }) => {
  const { chunks } = report.details;
  if (chunks === null || chunks.waits.length === 0) return <span />;
  const shown = chunks.waits.map((wait, i) => ({ ...wait, why: report.waits[i] ?? wait.reason }));
  return (
    <>
      <h2>Chunks that wait for a retry</h2>
      <Table
        caption={`${formatCount(shown.length)} of ${formatCount(chunks.retrying)}, earliest retry first`}
        rows={shown}
        empty=""
        columns={[
          { title: 'Coin', cell: ({ coinId }) => coinId },
          { title: 'Span', cell: ({ from, to }) => spanOf(Date.parse(from), Date.parse(to)) },
          { title: 'Until', cell: ({ until }) => <Moment at={Date.parse(until)} now={now} /> },
          { title: 'Failed', isNumber: true, cell: ({ attempts }) => formatCount(attempts) },
          { title: 'Why', cell: ({ why }) => why },
        ]}
      />
    </>
  );
};

function spanOf(from: Instant | null, to: Instant | null) {
  return from === null || to === null ? '' : <span class="nowrap">{`${formatDay(from)} … ${formatDay(to)}`}</span>;
}
