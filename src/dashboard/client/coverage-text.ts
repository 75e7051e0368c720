/** The map in words: texts about a cell and about a selection, and the addresses of their links. */
import { type Frame, type MapData, type Row, type State, spanOf } from './coverage-data.ts';
import type { Box } from './coverage-view.ts';

const DAY = 86_400;

/** `2024-01-31`, with the time unless it is midnight. */
function formatAt(at: number): string {
  const text = new Date(Math.round(at) * 1000).toISOString();
  return Math.round(at) % DAY === 0 ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 16)}Z`;
}

/** Coin, span and reasons of a cell. */
export function describeCell({ frame, row, from, to }: { frame: Frame; row: Row; from: number; to: number }): string {
  const found = new Map<string, string>();
  for (let i = 0; i < row.stretches.length; i += 3) {
    const [begin, end] = spanOf(row, frame, i);
    if (begin >= to || end <= from) continue;
    const { text } = frame.states[row.stretches[i]!]!;
    // A stretch that fills the cell needs no times.
    const part =
      begin <= from && end >= to ? '' : ` from ${formatAt(Math.max(begin, from))} to ${formatAt(Math.min(end, to))}`;
    found.set(`${text}${part}`, text);
  }
  const isKnown = from >= frame.from && to <= frame.to;
  const states = !isKnown ? 'not loaded, move the map there' : [...found.keys()].join('; ') || 'not wanted';
  const tier = row.tier === null ? 'not tracked' : `tier ${row.tier}`;
  return `${row.symbol} ${row.name}, ${row.interval} ${row.quote}, ${tier}. ${formatAt(from)} to ${formatAt(to)}: ${states}.${describeUnread(row)}`;
}

function describeUnread({ confirmedEmptyElsewhere: slots }: Row): string {
  if (slots === 0) return '';
  return ` This series has ${slots} confirmed empty ${slots === 1 ? 'slot' : 'slots'}, drawn as final at this zoom: zoom in to see where.`;
}

/** The confirmed empty slots of the visible rows that no stretch shows. Empty when every row shows all of them. */
export function describeUnreadRows(rows: readonly Row[]): string {
  const count = rows.filter(({ confirmedEmptyElsewhere }) => confirmedEmptyElsewhere > 0).length;
  if (count === 0) return '';
  return `${count === 1 ? 'One row has' : `${count} rows have`} confirmed empty slots that are drawn as final, because there is too much data at this zoom. Zoom in to see them.`;
}

export function coinHref({ coinId, interval, quote }: Row): string {
  return `/ui/coins/${encodeURIComponent(coinId)}?interval=${interval}&quote=${quote}`;
}

/** Series of one interval and quote, which one backfill can fill. */
type PriceLink = { readonly text: string; readonly href: string };

type Selected = {
  readonly text: string;
  readonly asked: readonly PriceLink[];
};

/** The action takes at most so many coins in one address. */
const MOST_COINS = 500;

/** Links to the prices of what a backfill can request in the box. When there is nothing, the text says why. */
export function describeSelection(box: Box, { rowOf, statesIn }: Pick<MapData, 'rowOf' | 'statesIn'>): Selected {
  const groups = new Map<string, Row[]>();
  const names = new Set<string>();
  const others = new Set<string>();
  let unknown = 0;
  for (let at = box.row; at < box.endRow; at++) {
    const row = rowOf(at);
    if (row === undefined) {
      unknown++;
      continue;
    }
    names.add(row.symbol);
    const states = statesIn(at, box.from, box.to);
    // Unknown states may be anything: the page with the price shows what they are.
    if (states?.some(({ isFetchable }) => isFetchable) === false) for (const why of whyNot(states)) others.add(why);
    else groups.set(`${row.interval} ${row.quote}`, [...(groups.get(`${row.interval} ${row.quote}`) ?? []), row]);
  }
  const shown = [...names].slice(0, 8).join(', ') + (names.size > 8 ? ` and ${names.size - 8} more` : '');
  const rest =
    unknown === 0 ? '' : ` The selection leaves out ${unknown} rows that are not loaded yet: scroll to them first.`;
  return {
    text: `Selected: ${shown}, ${formatAt(box.from)} to ${formatAt(box.to)}.${groups.size > 0 || others.size === 0 ? '' : ` There is nothing to request: ${[...others].join('; ')}.`}${rest}`,
    asked: [...groups].flatMap(([series, rows]) => linksOf(series, rows, box)),
  };
}

function whyNot(states: readonly State[]): readonly string[] {
  return states.length === 0 ? ['no slot there is wanted'] : states.map(({ text }) => text);
}

function linksOf(series: string, rows: readonly Row[], { from, to }: Box): PriceLink[] {
  const coins = [...new Set(rows.map(({ coinId }) => coinId))];
  const { interval, quote } = rows[0]!;
  const parts = Array.from({ length: Math.ceil(coins.length / MOST_COINS) }, (_, i) =>
    coins.slice(i * MOST_COINS, (i + 1) * MOST_COINS),
  );
  return parts.map((part) => {
    const query = new URLSearchParams(part.map((coin) => ['coin', coin]));
    for (const [name, value] of Object.entries({ interval, quote, from: iso(from), to: iso(to) }))
      query.set(name, value);
    const who = part.length === 1 ? `1 coin` : `${part.length} coins`;
    return { text: `What does it cost to fill ${series} of ${who}?`, href: `/ui/do/backfill?${query}` };
  });
}

export function iso(at: number): string {
  return new Date(Math.round(at) * 1000).toISOString();
}
