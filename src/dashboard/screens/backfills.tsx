/** The backfills: what each still needs, when it ends, what it waits for; and the buttons that change it. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import {
  formatCount,
  formatCounted,
  formatDay,
  formatInstant,
  formatPercent,
  formatSeries,
} from '../../core/format.ts';
import { type BackfillRow, describeLeft, readBackfills } from '../../views/backfills/backfills.ts';
import { countBackfills } from '../../views/dashboard/backfill-figures.ts';
import { readNumber, withFields } from '../parts/address.ts';
import { Ago, rangeOfTime } from '../parts/moment.tsx';
import { Table } from '../parts/table.tsx';
import type { ScreenInput, ScreenView } from '../screen.ts';

const MOST = 200;
const MOST_SHOWN = 5_000;

export async function backfillsScreen({ deps: { sql }, url, now }: ScreenInput): Promise<ScreenView> {
  const all = url.searchParams.get('all') === 'true';
  const shown = Math.min(MOST_SHOWN, readNumber(url.searchParams, 'shown') ?? MOST);
  const [rows, total] = await Promise.all([
    readBackfills(sql, { all, limit: shown, now }),
    countBackfills(sql, { all }),
  ]);
  const more = shown < MOST_SHOWN ? withFields(url, { shown: String(shown * 5) }) : null;
  const body = (
    <div>
      <h1>Backfills</h1>
      <p>
        {all ? (
          <a href="/ui/backfills">Only open backfills</a>
        ) : (
          <a href="/ui/backfills?all=true">Also finished backfills</a>
        )}
      </p>
      <section id="backfills" data-live>
        <BackfillTable rows={rows} now={now} empty={all ? 'There are no backfills yet.' : 'No backfill is open.'} />
        <ShownOf shown={rows.length} total={total} more={more === null ? null : { text: 'Show more', href: more }} />
      </section>
    </div>
  );
  return { title: 'Backfills', body };
}

/** Says that there are more than the page shows. */
export const ShownOf: FC<{
  readonly shown: number;
  readonly total: number;
  readonly more: { readonly text: string; readonly href: string } | null;
}> = ({ shown, total, more }) =>
  total <= shown ? (
    ''
  ) : (
    <p>
      {formatCount(shown)} of {formatCount(total)}. {more !== null && <a href={more.href}>{more.text}</a>}
    </p>
  );

export const BackfillTable: FC<{
  readonly rows: readonly BackfillRow[];
  readonly now: Instant;
  readonly empty: string;
}> = ({ rows, now, empty }) => (
  <Table
    caption="Most urgent first"
    rows={rows}
    empty={empty}
    columns={[
      { title: 'Number', cell: ({ id }) => <a href={`/ui/backfills/${id}`}>{id}</a> },
      { title: 'State', cell: (row) => row.state },
      {
        title: 'Series',
        cell: (row) => `${formatSeries(row)}${row.coins === null ? '' : `, ${formatCounted(row.coins, 'coin')}`}`,
      },
      { title: 'From', cell: ({ from }) => <span class="nowrap">{from === null ? '' : formatDay(from)}</span> },
      { title: 'To', cell: ({ to }) => <span class="nowrap">{to === null ? '' : formatDay(to)}</span> },
      {
        title: 'Progress',
        isNumber: true,
        cell: ({ progress }) => (progress === null ? '' : formatPercent(progress, 1)),
      },
      {
        title: 'Requests sent',
        isNumber: true,
        cell: ({ spent, plannedRequests, finishedAt }) =>
          finishedAt === null
            ? `${formatCount(spent)} of at least ${formatCount(plannedRequests)}`
            : formatCount(spent),
      },
      {
        title: 'Left',
        isNumber: true,
        cell: (row) => describeLeft(row) ?? '',
      },
      { title: 'Ends', cell: (row) => endOf(row, now) },
      { title: 'Change', isForButtons: true, cell: (row) => <Changes row={row} /> },
    ]}
  />
);

/** When it ended, or will end. */
export function endOf(row: BackfillRow, now: Instant) {
  const { finishedAt, finishFrom, finishTo, finishAt } = row;
  if (finishedAt !== null) return <Ago at={finishedAt} now={now} />;
  if (finishFrom !== null && finishTo !== null) return rangeOfTime(finishFrom, finishTo);
  return finishAt === null ? 'not known yet' : `about ${formatInstant(finishAt)}`;
}

/** Only backfills of the service can be changed. The user stops a command in its terminal. */
export const Changes: FC<{ readonly row: BackfillRow }> = ({ row: { id, state, isDetached } }) => {
  if (!isDetached) return <span class="soft">run by a command</span>;
  const isOpen = state === 'queued' || state === 'running';
  const changes = isOpen
    ? ['pause', 'cancel']
    : state === 'paused'
      ? ['resume', 'cancel']
      : state === 'done'
        ? []
        : ['resume'];
  return (
    <span class="actions">
      {changes.map((change) => (
        <a class="button" href={`/ui/do/${change}?backfill=${id}`} aria-label={`${change} backfill ${id}`}>
          {change}
        </a>
      ))}
    </span>
  );
};
