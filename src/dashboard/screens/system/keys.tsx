/** The keys of callers: who sends how many requests. For operators also: creating and revoking keys. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../../clock.ts';
import { PLAN_NAMES } from '../../../contract/plan/plans.ts';
import { monthStart } from '../../../core/calendar.ts';
import { UNLIMITED } from '../../../core/caller/api-key.ts';
import { formatCount, formatDay } from '../../../core/format.ts';
import { type ApiKeyUse, listApiKeys } from '../../../store/callers/api-key.ts';
import { limitOf, stateOf } from '../../../views/operations/api-keys.ts';
import { Ago } from '../../parts/moment.tsx';
import { Table } from '../../parts/table.tsx';
import type { ScreenInput, ScreenView } from '../../screen.ts';

export async function keysScreen({ deps: { sql }, url, now }: ScreenInput): Promise<ScreenView> {
  const all = url.searchParams.get('all') === 'true';
  const rows = await listApiKeys(sql, { month: monthStart(now), all, now });
  const body = (
    <div>
      <h1>Keys</h1>
      <p>
        {all ? <a href="/ui/keys">Only valid keys</a> : <a href="/ui/keys?all=true">Also revoked and expired keys</a>}
      </p>
      <section id="keys" data-live>
        <Keys rows={rows.toReversed()} now={now} empty={all ? 'There are no keys yet.' : 'There are no valid keys.'} />
      </section>
      <h2 class="on-screen">Create a key</h2>
      <NewKey />
    </div>
  );
  return { title: 'Keys', body };
}

const Keys: FC<{ readonly rows: readonly ApiKeyUse[]; readonly now: Instant; readonly empty: string }> = ({
  rows,
  now,
  empty,
}) => (
  <Table
    caption="Newest first. Chandler stores only the first part of a key and its hash"
    rows={rows}
    empty={empty}
    columns={[
      { title: 'Key', cell: ({ prefix }) => <code class="nowrap">{prefix}</code> },
      { title: 'Name', cell: ({ name }) => name ?? '' },
      { title: 'Plan', cell: ({ plan }) => plan },
      { title: 'For', cell: ({ isOperator }) => (isOperator ? 'operator' : 'caller') },
      { title: 'This month', isNumber: true, cell: ({ thisMonth }) => formatCount(thisMonth) },
      { title: 'Limit', isNumber: true, cell: limitOf },
      {
        title: 'Last used',
        // Sessions of operators last twelve hours.
        cell: ({ lastSeenAt, isOperator }) =>
          lastSeenAt === null ? isOperator ? 'not in the last 12 hours' : 'never' : <Ago at={lastSeenAt} now={now} />,
      },
      { title: 'Created', cell: ({ createdAt }) => <span class="nowrap">{formatDay(createdAt).slice(0, 10)}</span> },
      { title: 'State', cell: (row) => stateOf(row, now) },
      {
        title: 'Change',
        isForButtons: true,
        cell: ({ prefix, revokedAt }) =>
          revokedAt === null ? (
            <a class="button" href={`/ui/do/revoke-key?key=${prefix}`} aria-label={`revoke ${prefix}`}>
              revoke
            </a>
          ) : (
            ''
          ),
      },
    ]}
  />
);

/** Leads to the confirmation, which only operators can pass. */
const NewKey: FC = () => (
  <form class="filters" action="/ui/do/create-key">
    <label>
      Plan
      <select name="plan">
        {[...PLAN_NAMES, UNLIMITED].map((plan) => (
          <option value={plan}>{plan}</option>
        ))}
      </select>
    </label>
    <label>
      Who holds it
      <input name="name" maxlength={100} size={24} autocomplete="off" />
    </label>
    <label>
      May use these pages
      <select name="operator">
        <option value="false">no: key for a caller</option>
        <option value="true">yes: key for an operator</option>
      </select>
    </label>
    <label>
      Expires
      <input name="expires" type="date" />
    </label>
    <button type="submit">Continue</button>
  </form>
);
