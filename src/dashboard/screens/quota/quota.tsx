/** The quota: what is left and how it burns down, what spends it, what the schedules cost, and what other plans would leave. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../../clock.ts';
import {
  formatCount,
  formatCounted,
  formatDuration,
  formatInstant,
  formatLimit,
  formatPercent,
  formatRelative,
} from '../../../core/format.ts';
import { DAY, HOUR } from '../../../core/interval.ts';
import { readSpentOverTime } from '../../../views/dashboard/spent-over-time.ts';
import { Moment } from '../../parts/moment.tsx';
import type { PlanLine, QuotaReport, QuotaWindow } from '../../parts/reports.ts';
import { Table } from '../../parts/table.tsx';
import type { ScreenInput, ScreenView } from '../../screen.ts';
import { BurnDown } from './burn-down.tsx';

export async function quotaScreen({ deps: { sql, readQuota }, now }: ScreenInput): Promise<ScreenView> {
  const report = await readQuota();
  const { accountId } = report;
  const spent = await Promise.all(
    report.windows.map(({ name, start, reset }) =>
      readSpentOverTime(sql, { accountId, from: start, to: reset, bucketMs: name === 'month' ? DAY : HOUR }),
    ),
  );
  const body = (
    <div>
      <h1>Quota</h1>
      <p>
        Account <code>{accountId}</code>, plan <strong>{report.plan}</strong> ({report.planSource})
      </p>
      <section id="holds" data-live>
        {report.holds.map((hold) => (
          <p class="notice bad">{hold}</p>
        ))}
        {report.holds.length === 0 && <p class="good">No request is held.</p>}
        {report.notes.map((note) => (
          <p>{note}</p>
        ))}
      </section>
      <section id="windows" data-live>
        {report.windows.map((window, i) => (
          <>
            <h2>This {window.name}</h2>
            <p>{describeWindow(window, now)}</p>
            <BurnDown window={window} spent={spent[i]!} now={now} />
          </>
        ))}
      </section>
      <section id="spenders" data-live>
        <h2>Used by</h2>
        <Spenders report={report} />
      </section>
      <section id="schedules" data-live>
        <h2>Schedules</h2>
        <Schedules report={report} now={now} />
      </section>
      <section id="plans" data-live>
        <h2>Other plans</h2>
        <Plans report={report} now={now} />
      </section>
    </div>
  );
  return { title: 'Quota', body };
}

function describeWindow({ spent, limit, reserved, reset, forecast }: QuotaWindow, now: Instant): string {
  const left = limit === null ? '' : `, ${formatCount(Math.max(0, limit - spent))} of ${formatCount(limit)} left`;
  const kept = reserved === 0 ? '' : `, and ${formatCount(reserved)} are reserved for the schedules`;
  const end =
    forecast === null
      ? ''
      : ` Forecast: ${forecast.least === forecast.most ? 'about ' : `${formatCount(forecast.least)} to `}${formatCounted(forecast.most, 'request')} sent by then.`;
  return `${formatCounted(spent, 'request')} sent${left}${kept}. The quota resets ${formatInstant(reset)}, ${formatRelative(reset, now)}.${end}`;
}

const Spenders: FC<{ readonly report: QuotaReport }> = ({ report }) => (
  <Table
    caption="Requests sent, by purpose; most used today first"
    rows={report.spenders}
    empty="No request has been sent this month."
    columns={[
      {
        title: 'For',
        cell: ({ name }) => {
          const id = /^backfill (\d+)$/.exec(name)?.[1];
          return id === undefined ? name : <a href={`/ui/backfills/${id}`}>{name}</a>;
        },
      },
      { title: 'Class', cell: (spender) => spender.class },
      { title: 'Today', isNumber: true, cell: ({ day }) => formatCount(day) },
      { title: 'This month', isNumber: true, cell: ({ month }) => formatCount(month) },
      { title: 'Subject', cell: ({ subject }) => subject ?? '' },
    ]}
  />
);

const Schedules: FC<{ readonly report: QuotaReport; readonly now: Instant }> = ({ report, now }) => {
  const month = report.windows.find(({ name }) => name === 'month');
  return (
    <Table
      caption="Requests that the schedules cost"
      rows={report.schedules}
      empty="There are no schedules."
      columns={[
        { title: 'Schedule', cell: ({ name }) => <span class="nowrap">{name}</span> },
        { title: 'When (UTC)', cell: ({ cron }) => (cron === null ? 'off' : <code class="nowrap">{cron}</code>) },
        { title: 'Per run', isNumber: true, cell: ({ perRun }) => formatCount(perRun) },
        { title: 'Per day', isNumber: true, cell: ({ perDay }) => formatCount(perDay) },
        { title: 'Per month', isNumber: true, cell: ({ perMonth }) => formatCount(perMonth) },
        {
          title: 'Share of the plan',
          isNumber: true,
          cell: ({ perMonth }) => (!month?.limit || perMonth === 0 ? '' : formatPercent(perMonth, month.limit)),
        },
        {
          title: 'Next run',
          cell: ({ next }) =>
            next === null ? (
              ''
            ) : (
              <span class="nowrap">
                <Moment at={next} now={now} />
              </span>
            ),
        },
        {
          title: 'Last run',
          cell: ({ lastRun, problem }) => (problem === null ? lastRun : <span class="warn">{problem}</span>),
        },
        { title: 'Fetches', cell: ({ fetches }) => fetches },
      ]}
    />
  );
};

const Plans: FC<{ readonly report: QuotaReport; readonly now: Instant }> = ({ report, now }) => (
  <>
    <p class="soft">
      This table uses the documented limits, and the schedules that a service would run under each plan. It treats
      another plan as a new account, with nothing sent yet; for your plan it counts what is left from now on. Queued and
      running backfills need {formatCounted(report.openRequests, 'request')}; paused backfills are not counted.
    </p>
    <Table
      caption="Requests that each plan would leave this month"
      rows={report.plans}
      empty=""
      columns={[
        { title: 'Plan', cell: ({ name, isPresent }) => (isPresent ? <strong>{name} (yours)</strong> : name) },
        { title: 'Per month', isNumber: true, cell: ({ perMonth }) => formatLimit(perMonth) },
        { title: 'Per day', isNumber: true, cell: ({ perDay }) => formatLimit(perDay) },
        { title: 'Schedules', isNumber: true, cell: ({ schedules }) => formatCount(schedules) },
        { title: 'Sent', isNumber: true, cell: ({ spent }) => formatCount(spent) },
        { title: 'Left for backfills', isNumber: true, cell: ({ left }) => formatLimit(left) },
        { title: 'Daily candles', cell: historyOf },
        { title: 'Intervals', cell: ({ intervals }) => intervals.join(' ') },
        {
          title: 'Backfills done',
          cell: ({ backfillsDone }) =>
            report.openRequests === 0 ? (
              ''
            ) : typeof backfillsDone === 'string' ? (
              backfillsDone
            ) : (
              <Moment at={backfillsDone} now={now} />
            ),
        },
      ]}
    />
  </>
);

function historyOf({ historyMs }: PlanLine): string {
  return historyMs === null ? 'all' : `the last ${formatDuration(historyMs)}`;
}
