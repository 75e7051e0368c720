/** The system: versions, the services that run, the checks of `chandler doctor`, connections, sizes, and who changed something. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../../clock.ts';
import { formatBytes, formatCount, formatDuration, formatInstant } from '../../../core/format.ts';
import { VERSION } from '../../../core/version.ts';
import { type Instance, liveInstances } from '../../../store/work/instance.ts';
import { type AuditEntry, type AuditPage, readAuditEntries } from '../../../views/dashboard/audit-entries.ts';
import { readSystemFacts, type SystemFacts } from '../../../views/dashboard/system.ts';
import { readNumber } from '../../parts/address.ts';
import { Facts } from '../../parts/facts.tsx';
import { Ago } from '../../parts/moment.tsx';
import type { CheckResult } from '../../parts/reports.ts';
import { Table } from '../../parts/table.tsx';
import type { DashboardDeps, ScreenInput, ScreenView } from '../../screen.ts';
import { Older } from '../records/older.tsx';

/** Some checks ask other machines, so a page waits for them no longer than this. */
const WAIT_MS = 150;

export async function systemScreen({ deps, url, now }: ScreenInput): Promise<ScreenView> {
  const { sql } = deps;
  const before = readNumber(url.searchParams, 'before');
  const [facts, instances, audit, checks] = await Promise.all([
    readSystemFacts(sql),
    liveInstances(sql, now),
    readAuditEntries(sql, before),
    checksSoFar(deps),
  ]);
  const body = (
    <div>
      <h1>System</h1>
      <Facts
        facts={[
          ['Chandler', VERSION],
          ['Postgres', facts.postgres],
          ['Schema', facts.migration],
          ['Database', formatBytes(facts.bytes)],
        ]}
      />
      <section id="services" data-live>
        <h2>Services</h2>
        <Services instances={instances} now={now} />
      </section>
      <section id="checks" data-live>
        <h2>Checks</h2>
        <Checks checks={checks} />
      </section>
      <h2>Connections</h2>
      <Connections facts={facts} />
      <h2>Largest tables</h2>
      <Sizes facts={facts} />
      <section id="audit" data-live>
        <h2>Audit log</h2>
        <Audit page={audit} now={now} />
        <Older url={url} next={audit.next} text="Older entries" anchor="audit" />
      </section>
    </div>
  );
  return { title: 'System', body };
}

/** Null while they are not done yet. */
async function checksSoFar({ clock, readChecks }: DashboardDeps): Promise<readonly CheckResult[] | null> {
  const waits = new AbortController();
  try {
    return await Promise.race([readChecks(), clock.sleep(WAIT_MS, waits.signal).then(() => null)]);
  } finally {
    waits.abort();
  }
}

const Services: FC<{ readonly instances: readonly Instance[]; readonly now: Instant }> = ({ instances, now }) => (
  <Table
    caption="Services with a recent heartbeat"
    rows={instances}
    empty="No service is running, so no schedule runs. Start one with: chandler service"
    columns={[
      { title: 'Service', cell: ({ owner }) => owner },
      { title: 'Does', cell: ({ roles }) => roles.join(', ') },
      { title: 'Since', cell: ({ startedAt }) => <span class="nowrap">{formatInstant(startedAt)}</span> },
      { title: 'Last heartbeat', cell: ({ heartbeatAt }) => <Ago at={heartbeatAt} now={now} /> },
    ]}
  />
);

const KINDS = { ok: 'good', warn: 'warn', fail: 'bad' } as const;
const RANKS = { fail: 0, warn: 1, ok: 2 } as const;

const Checks: FC<{ readonly checks: readonly CheckResult[] | null }> = ({ checks }) =>
  checks === null ? (
    <p>
      The checks are running. <a href="/ui/system">Reload</a>
    </p>
  ) : (
    <Table
      caption="Results of chandler doctor, at most a minute old; these checks send no request to the upstream"
      rows={checks.toSorted((a, b) => RANKS[a.state] - RANKS[b.state])}
      empty="There are no checks."
      columns={[
        { title: 'Check', cell: ({ name }) => <span class="nowrap">{name}</span> },
        { title: 'State', cell: ({ state }) => <span class={KINDS[state]}>{state}</span> },
        { title: 'Found', cell: ({ found }) => found },
        { title: 'How to fix it', cell: ({ fix }) => fix ?? '' },
      ]}
    />
  );

const Connections: FC<{ readonly facts: SystemFacts }> = ({ facts: { connections, mostConnections } }) => (
  <Table
    caption={`Connections to this database by program; the server allows ${formatCount(mostConnections)} in total`}
    rows={connections}
    empty="There are none."
    columns={[
      { title: 'Program', cell: ({ program }) => program },
      { title: 'Connections', isNumber: true, cell: ({ total }) => formatCount(total) },
      { title: 'Busy', isNumber: true, cell: ({ active }) => formatCount(active) },
    ]}
  />
);

const Sizes: FC<{ readonly facts: SystemFacts }> = ({ facts: { tables } }) => (
  <Table
    caption="Each size includes the indexes and all partitions; the server estimates the rows"
    rows={tables}
    empty="There are none."
    columns={[
      { title: 'Table', cell: ({ name }) => name },
      { title: 'Size', isNumber: true, cell: ({ bytes }) => formatBytes(bytes) },
      { title: 'Indexes', isNumber: true, cell: ({ indexBytes }) => formatBytes(indexBytes) },
      { title: 'Rows (about)', isNumber: true, cell: ({ rows }) => (rows === null ? '' : formatCount(rows)) },
    ]}
  />
);

const Audit: FC<{ readonly page: AuditPage; readonly now: Instant }> = ({ page, now }) => (
  <Table
    caption="Commands that changed something, newest first"
    rows={page.rows}
    empty="No command has changed anything yet."
    columns={[
      { title: 'When', cell: ({ at }) => <Ago at={at} now={now} /> },
      { title: 'Who', cell: ({ actor }) => actor },
      { title: 'Command', cell: ({ command }) => <code>{command}</code> },
      { title: 'How it ended', cell: howItEnded },
    ]}
  />
);

/** Shows only the names of the settings, because some values are secret. */
function howItEnded({ at, endedAt, message, changedSettings }: AuditEntry): string {
  const changed = changedSettings.length === 0 ? '' : `settings changed: ${changedSettings.join(', ')}; `;
  if (endedAt === null) return `${changed}has not ended, or was killed`;
  return `${changed}${message ?? `done in ${formatDuration(endedAt - at)}`}`;
}
