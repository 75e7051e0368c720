/** Lies that are true answers to another request: another interval, another coin, another day. */
import { formatTime } from '../../contract/time.ts';
import { DAY, INTERVAL_MS, INTERVALS, isPriceInterval, PRICE_INTERVALS, widthOf } from '../../core/interval.ts';
import { below, mix, unit } from '../hash.ts';
import type { FaultName } from './fault-spec.ts';
import { openTimeOf, type WireRow, withValuesOf } from './faulty-rows.ts';
import { parseRowRequest } from './row-request.ts';

type Circumstances = {
  readonly request: Request;
  readonly roll: number;
  /** Returns the handler's answer to any request. */
  readonly send: (request: Request) => Promise<Response>;
};

/** Fewer prices of another width look like any others, because such a row has no end (docs/proof.md, what is not found out). */
const TELLING_PRICES = 4;

/** The rows to send instead of `rows`; null when this fault is none of these, or when the other request has no answer. */
export async function otherRows(
  fault: FaultName,
  rows: readonly WireRow[],
  { request, roll, send }: Circumstances,
): Promise<WireRow[] | null> {
  const question = parseRowRequest(request);
  if (question === null) return null;
  const isOfPrices = isPriceInterval(question.interval);
  const sendOther = (change: (url: URL) => void) => {
    const url = new URL(request.url);
    change(url);
    return listOf<WireRow>(send(new Request(url, { headers: request.headers })));
  };
  switch (fault) {
    case 'wrong-interval': {
      const alike = isOfPrices ? PRICE_INTERVALS : INTERVALS;
      const others = alike.filter((interval) => interval !== question.interval);
      const other = widthOf(others[below(others.length, roll)]!);
      const told = await sendOther(({ searchParams }) => searchParams.set('interval', other));
      return isOfPrices && told.length < TELLING_PRICES ? null : notEmpty(told);
    }
    case 'other-coin': {
      const list = new URL(request.url);
      list.pathname = list.pathname.replace(/\/(coins|tickers)\/.*$/, '/coins');
      const coins = await listOf<ListedCoin>(
        send(new Request(new URL(list.pathname, list), { headers: request.headers })),
      );
      const others = coins.filter(({ id, is_active }) => is_active && id !== question.coinId);
      const other = others[below(others.length, roll)];
      if (other === undefined) return null;
      return notEmpty(
        await sendOther((url) => {
          url.pathname = url.pathname.replace(/\/(coins|tickers)\/[^/]+/, `/$1/${encodeURIComponent(other.id)}`);
        }),
      );
    }
    case 'shifted-day': {
      const shift = unit(mix(roll, 7)) < 0.5 ? -DAY : DAY;
      const { from, to } = question;
      const neighbours = await sendOther(({ searchParams }) => {
        searchParams.set('start', formatTime(from + shift));
        searchParams.set('end', formatTime(to + shift + (isOfPrices ? INTERVAL_MS[question.interval] : 0)));
      });
      const byTime = new Map(neighbours.map((row) => [openTimeOf(row) - shift, row]));
      return notEmpty(
        rows.flatMap((row) => {
          const neighbour = byTime.get(openTimeOf(row));
          return neighbour === undefined ? [] : [withValuesOf(row, neighbour)];
        }),
      );
    }
    default:
      return null;
  }
}

type ListedCoin = { readonly id: string; readonly is_active: boolean };

async function listOf<T>(answer: Promise<Response>): Promise<T[]> {
  const response = await answer;
  const body = response.ok ? ((await response.json()) as unknown) : null;
  return Array.isArray(body) ? (body as T[]) : [];
}

function notEmpty(rows: WireRow[]): WireRow[] | null {
  return rows.length === 0 ? null : rows;
}
