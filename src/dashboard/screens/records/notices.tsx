/** The notices to the operator: first the states that last, then all others from the newest, each with whether it was sent. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../../clock.ts';
import { formatCounted, formatDuration, formatInstant, formatRelative } from '../../../core/format.ts';
import { type NoticeRow, readNotices, readOpenNotices } from '../../../views/dashboard/notices.ts';
import { readNumber } from '../../parts/address.ts';
import { Moment } from '../../parts/moment.tsx';
import { Table } from '../../parts/table.tsx';
import type { ScreenInput, ScreenView } from '../../screen.ts';
import { Older } from './older.tsx';

export async function noticesScreen({ deps: { sql }, url, now }: ScreenInput): Promise<ScreenView> {
  const before = readNumber(url.searchParams, 'before');
  const [open, page] = await Promise.all([readOpenNotices(sql), readNotices(sql, before)]);
  const body = (
    <div>
      <h1>Notices</h1>
      <p class="soft">
        The service records every notice to its operator here. <a href="/">Home</a> shows everything that needs
        attention.
      </p>
      <section id="open" data-live>
        <h2>Current problems</h2>
        <NoticeTable
          caption="Notices of problems that have not ended"
          rows={open}
          now={now}
          empty="There are no current problems."
        />
      </section>
      <section id="notices" data-live>
        <h2>Other notices</h2>
        <NoticeTable caption="Newest first" rows={page.rows} now={now} empty="There are no other notices." />
        <Older url={url} next={page.next} text="Older notices" />
      </section>
    </div>
  );
  return { title: 'Notices', body };
}

const NoticeTable: FC<{
  readonly caption: string;
  readonly rows: readonly NoticeRow[];
  readonly now: Instant;
  readonly empty: string;
}> = ({ caption, rows, now, empty }) => (
  <Table
    caption={caption}
    rows={rows}
    empty={empty}
    columns={[
      {
        title: 'Raised',
        cell: ({ raisedAt }) => (
          <span class="nowrap">
            <Moment at={raisedAt} now={now} />
          </span>
        ),
      },
      { title: 'About', cell: ({ event }) => <span class="nowrap">{event}</span> },
      { title: 'Text', cell: ({ text }) => text },
      { title: 'Duration', cell: (row) => lastsOf(row, now) },
      { title: 'Sent', cell: (row) => <Sent row={row} now={now} /> },
    ]}
  />
);

function lastsOf({ beganAt, endedAt }: NoticeRow, now: Instant): string {
  if (beganAt === null) return '';
  if (endedAt === null) return `since ${formatInstant(beganAt)}, ${formatDuration(now - beganAt)}`;
  return `${formatDuration(endedAt - beganAt)}, until ${formatInstant(endedAt)}`;
}

const Sent: FC<{ readonly row: NoticeRow; readonly now: Instant }> = ({ row, now }) => {
  const { sentAt, dueAt, attempts, message } = row;
  if (sentAt !== null) return <span class="good">sent {formatInstant(sentAt)}</span>;
  const why = message === null ? '' : `: ${message}`;
  if (dueAt === null)
    return (
      <span class="bad">
        not sent, given up after {formatCounted(attempts, 'attempt')}
        {why}
      </span>
    );
  if (attempts === 0) return 'waiting to be sent';
  return (
    <span class="warn">
      not sent yet, tried {attempts === 1 ? 'once' : `${attempts} times`}, next {formatRelative(dueAt, now)}
      {why}
    </span>
  );
};
