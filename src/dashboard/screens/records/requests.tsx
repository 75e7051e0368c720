/** The requests to the upstream: what each requested, and how it ended; a page at a time, with filters. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../../clock.ts';
import { formatBytes, formatCount, formatCounted, formatDay, formatInstant } from '../../../core/format.ts';
import {
  NOT_STORED,
  type RequestFilter,
  type RequestPage,
  type RequestRow,
  readRequests,
} from '../../../views/dashboard/requests.ts';
import { BadAddress } from '../../bad-address.ts';
import { readInstant, readNumber, readText, withFields } from '../../parts/address.ts';
import { Choice } from '../../parts/choice.tsx';
import { Ago } from '../../parts/moment.tsx';
import { Table } from '../../parts/table.tsx';
import type { ScreenInput, ScreenView } from '../../screen.ts';
import { CoinLookupResult, lookUpCoin } from './coin-lookup.tsx';
import { Older } from './older.tsx';
import { requestScreen } from './request.tsx';

/** The names in `ops.fetch`. An address may contain any other text. */
const OUTCOMES = [
  ...['stored', NOT_STORED, 'unavailable', 'limited', 'moved', 'malformed', 'implausible', 'unconfirmed'],
  ...['quota exhausted', 'unknown id', 'unknown route', 'forbidden', 'history limit', 'bad request'],
] as const;
const SHORT = 12;
/** A message is cut to so many characters, because it may be the error page of a gateway. */
const MESSAGE = 160;

export async function requestsScreen(input: ScreenInput): Promise<ScreenView> {
  const { deps, url, now } = input;
  const id = readNumber(url.searchParams, 'id');
  if (id !== null) return requestScreen(input, id);
  const given = readFilter(url.searchParams);
  const before = readNumber(url.searchParams, 'before');
  const meant = given.coin === null ? null : await lookUpCoin(deps.sql, given.coin);
  const filter = { ...given, coin: meant?.ids ?? null };
  const isUnclear = meant?.coin === null;
  const page = isUnclear ? NO_REQUESTS : await readRequests(deps.sql, filter, before);
  const body = (
    <div>
      <h1>Requests</h1>
      <Filters given={given} />
      <section id="requests" data-live>
        {meant !== null && <CoinLookupResult meant={meant} url={url} />}
        {!isUnclear && <RequestTable rows={page.rows} filters={describeFilter(given)} url={url} now={now} />}
        {page.looked !== null && <p class="soft">{describeLook(page.looked, meant?.coin?.id ?? null)}</p>}
        <Older url={url} next={page.next} text={page.looked === null ? 'Older requests' : 'Search further back'} />
      </section>
    </div>
  );
  return { title: 'Requests', body };
}

const RequestTable: FC<{
  readonly rows: readonly RequestRow[];
  readonly filters: string;
  readonly url: URL;
  readonly now: Instant;
}> = ({ rows, filters, url, now }) => (
  <Table
    caption={`Requests to the upstream, newest first${filters}`}
    rows={rows}
    empty="No request matches."
    columns={[
      {
        title: 'When',
        cell: (row) => (
          <a href={`/ui/requests?id=${row.id}`}>
            <Ago at={row.sentAt} now={now} />
          </a>
        ),
      },
      { title: 'Subject', cell: (row) => <What row={row} url={url} /> },
      { title: 'Endpoint', cell: ({ endpoint }) => <a href={filterOf(url, { endpoint })}>{endpoint}</a> },
      { title: 'Outcome', cell: (row) => <Outcome row={row} url={url} /> },
      { title: 'Status', isNumber: true, cell: ({ status }) => status ?? '' },
      { title: 'ms', isNumber: true, cell: ({ durationMs }) => formatCount(durationMs) },
      { title: 'Bytes', isNumber: true, cell: ({ bytes }) => formatBytes(bytes) },
      { title: 'Rows', isNumber: true, cell: ({ rows }) => formatCount(rows) },
      { title: 'Stored', isNumber: true, cell: ({ stored }) => formatCount(stored) },
      { title: 'Revised', isNumber: true, cell: ({ revised }) => formatCount(revised) },
      { title: 'SHA-256', cell: (row) => <Digest row={row} /> },
    ]}
  />
);

const NO_REQUESTS: RequestPage = { rows: [], next: null, looked: null };

/** The filter as given: the coin is any of its names. */
type Given = Omit<RequestFilter, 'coin'> & { readonly coin: string | null };

function readFilter(params: URLSearchParams): Given {
  const filter = {
    outcome: readText(params, 'outcome', 60),
    endpoint: readText(params, 'endpoint', 60),
    coin: readText(params, 'coin'),
    about: readText(params, 'about'),
    backfill: readNumber(params, 'backfill'),
    from: readInstant(params, 'from'),
    to: readInstant(params, 'to'),
  };
  if (filter.from !== null && filter.to !== null && filter.from >= filter.to)
    throw new BadAddress(`from must be before to, got ${formatInstant(filter.from)} and ${formatInstant(filter.to)}.`);
  return filter;
}

/** The address of the first page of the same list, with these fields. */
function filterOf(url: URL, fields: Readonly<Record<string, string>>): string {
  return withFields(url, { ...fields, before: null });
}

/** Paper does not show the filters. */
function describeFilter({ from, to, ...rest }: Given): string {
  const times = { from: from && formatInstant(from), to: to && formatInstant(to) };
  const texts = Object.entries({ ...rest, ...times }).flatMap(([name, value]) =>
    value === null ? [] : `${name} ${value}`,
  );
  return texts.length === 0 ? '' : `: ${texts.join(', ')}`;
}

function describeLook({ requests, backTo }: NonNullable<RequestPage['looked']>, coin: string | null): string {
  const back = `${formatCounted(requests, 'request')}, back to ${formatInstant(backTo)}`;
  if (coin === null) return `Searched ${back}.`;
  return `All requests for candles and prices of ${coin} are listed. Requests about the coin itself are listed only from ${back}; give a time to search elsewhere.`;
}

const Filters: FC<{ readonly given: Given }> = ({ given }) => {
  const { outcome, endpoint, coin, about, backfill, from, to } = given;
  const outcomes =
    outcome === null || (OUTCOMES as readonly string[]).includes(outcome) ? OUTCOMES : [...OUTCOMES, outcome];
  return (
    <form class="filters" action="/ui/requests">
      <Choice name="outcome" label="Outcome" value={outcome ?? ''} options={[['', 'any'], ...outcomes]} />
      <label>
        Endpoint
        <input name="endpoint" value={endpoint ?? ''} size={12} placeholder="ohlcv" />
      </label>
      <label>
        Coin
        <input name="coin" value={coin ?? ''} size={16} placeholder="symbol, name or id" />
      </label>
      {about !== null && (
        <label>
          About (exchange, tag …)
          <input name="about" value={about} size={16} />
        </label>
      )}
      <label>
        Backfill
        <input name="backfill" value={backfill ?? ''} size={6} inputmode="numeric" />
      </label>
      <label>
        From (UTC)
        <input name="from" value={from === null ? '' : inAddress(from)} size={16} placeholder="2026-01-31T12:00" />
      </label>
      <label>
        To (UTC)
        <input name="to" value={to === null ? '' : inAddress(to)} size={16} placeholder="2026-02-01" />
      </label>
      <button type="submit">Filter</button>
      {Object.values(given).some((value) => value !== null) && <a href="/ui/requests">All requests</a>}
    </form>
  );
};

function inAddress(at: number): string {
  return formatDay(at).replace(' ', 'T').replace(/Z$/, '');
}

const What: FC<{ readonly row: RequestRow; readonly url: URL }> = ({ row, url }) => {
  const { subject, interval, quote, backfillId, attempt, from, to } = row;
  return (
    <>
      <span>
        {/* A request for a page of a list has an empty subject. */}
        {subject !== null && subject !== '' && (
          <a href={filterOf(url, { [interval === null ? 'about' : 'coin']: subject })}>{subject}</a>
        )}
        {interval !== null && ` ${interval} ${quote}`}
        {backfillId !== null && ', '}
        {backfillId !== null && <a href={`/ui/backfills/${backfillId}`}>backfill {backfillId}</a>}
        {attempt > 1 && `, attempt ${attempt}`}
      </span>
      {from !== null && to !== null && <br />}
      {from !== null && to !== null && <span class="nowrap">{`${formatDay(from)} … ${formatDay(to)}`}</span>}
    </>
  );
};

const Outcome: FC<{ readonly row: RequestRow; readonly url: URL }> = ({
  row: { outcome, message, quarantined },
  url,
}) => (
  <>
    <a href={filterOf(url, { outcome })} class={`nowrap ${kindOf(outcome)}`}>
      {outcome}
    </a>
    {message !== null && `: ${message.length > MESSAGE ? `${message.slice(0, MESSAGE)}…` : message}`}
    {quarantined > 0 && `, ${formatCounted(quarantined, 'row')} quarantined`}
  </>
);

const FAILURES: readonly string[] = ['unavailable', 'limited', 'malformed', 'implausible'];

function kindOf(outcome: string): string {
  return outcome === 'stored' ? 'good' : FAILURES.includes(outcome) ? 'bad' : 'warn';
}

const Digest: FC<{ readonly row: RequestRow }> = ({ row: { bodySha256 } }) =>
  bodySha256 === null ? (
    ''
  ) : (
    <code class="nowrap" title={bodySha256}>
      {bodySha256.slice(0, SHORT)}
    </code>
  );
