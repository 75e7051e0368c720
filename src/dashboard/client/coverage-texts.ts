/** The texts next to the map: the cell, the selection with its links, the address, and the table of the visible rows. */
import type { Cell } from './coverage-cursor.ts';
import type { MapData, Row } from './coverage-data.ts';
import { coinHref, describeCell, describeSelection, describeUnreadRows, iso } from './coverage-text.ts';
import type { Box, View } from './coverage-view.ts';

export type MapTexts = {
  /** Null when there is no cell. */
  readonly cell: (cell: Box | null) => void;
  readonly selection: (box: Box | null) => void;
  readonly problem: (text: string | null) => void;
  /** The visible rows. */
  readonly rows: (rows: readonly Row[]) => void;
  /** Writes the view into the address, the form and the table, after it has stayed the same for a moment. */
  readonly address: (view: View) => void;
  /** Writes cursor and selection into the address in the same way. */
  readonly marks: (cell: Cell | null, selection: Box | null) => void;
  /** Opens the page of the row's coin. */
  readonly open: (row: number) => void;
  /** Scrolls to the text about the selection. */
  readonly reveal: () => void;
  /** Opens the price of the selection. With several links, it focuses the first one and says that there are several. */
  readonly openPrice: () => void;
};

const SETTLE_MS = 500;

/** What the page showed first. */
type First = {
  readonly from: number;
  readonly to: number;
  readonly cell: Cell | null;
  readonly selection: Box | null;
};

export function createMapTexts(data: MapData, first: First): MapTexts {
  const cellPlace = document.getElementById('map-cell')!;
  const selectionPlace = document.getElementById('map-selection')!;
  const unreadPlace = document.getElementById('map-unread')!;
  const several = document.createElement('p');
  let trouble: string | null = null;
  const address = createAddress(data, first);
  let shown = '';
  let selected = JSON.stringify(['', []]);

  const cell = (box: Box | null) => {
    const row = box && data.rowOf(box.row);
    const frame = box && data.frameOf(box.row);
    const text = box && row && frame ? describeCell({ frame, row, from: box.from, to: box.to }) : 'No cell is chosen.';
    const next = trouble ?? text;
    // A screen reader repeats a text that is written again.
    if (next === shown) return;
    shown = next;
    cellPlace.textContent = `${next} `;
    if (row && trouble === null) cellPlace.append(link(`Open ${row.symbol}`, coinHref(row)));
  };
  return {
    cell,
    selection(box) {
      const { text, asked } = box === null ? { text: '', asked: [] } : describeSelection(box, data);
      const now = JSON.stringify([text, asked]);
      // Replaced links lose the focus.
      if (now === selected) return;
      selected = now;
      selectionPlace.hidden = box === null;
      const list = document.createElement('ul');
      for (const one of asked) {
        const item = document.createElement('li');
        item.append(link(one.text, one.href));
        list.append(item);
      }
      several.textContent = '';
      selectionPlace.replaceChildren(text, list, several);
    },
    problem(text) {
      trouble = text;
    },
    rows(rows) {
      const text = describeUnreadRows(rows);
      if (unreadPlace.textContent !== text) unreadPlace.textContent = text;
    },
    address: address.view,
    marks: address.marks,
    open(row) {
      const found = data.rowOf(row);
      address.write();
      if (found !== undefined) location.assign(coinHref(found));
    },
    reveal() {
      // The visitor can follow the links at once, so the address must already contain the selection for the way back.
      address.write();
      selectionPlace.scrollIntoView({ block: 'nearest' });
    },
    openPrice() {
      address.write();
      const links = selectionPlace.querySelectorAll('a');
      if (links.length === 1) location.assign(links[0]!.href);
      else if (links.length > 1) {
        several.textContent = `There are ${links.length} links, one for each cost: Tab moves to the next one, Enter opens it.`;
        links[0]!.focus();
      }
    },
  };
}

function link(text: string, href: string): HTMLAnchorElement {
  const made = document.createElement('a');
  made.href = href;
  made.textContent = text;
  return made;
}

function createAddress(data: MapData, { from: firstFrom, to: firstTo, cell, selection }: First) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let view: View | null = null;
  /** Changes that are not written yet, by name. Null removes the field. */
  const marks = new Map<string, string | null>();
  let written = { cell, selection };

  /** Returns whether the first row has changed. */
  const writeAddress = ({ from, to, top }: View): boolean => {
    const address = new URL(location.href);
    const { searchParams } = address;
    const before = searchParams.get('row') ?? '0';
    const row = String(Math.round(top));
    if (row === '0') searchParams.delete('row');
    else searchParams.set('row', row);
    for (const [name, value] of marks) {
      if (value === null) searchParams.delete(name);
      else searchParams.set(name, value);
    }
    marks.clear();
    // The default view needs no fields in the address, and moves on with the time.
    const isAll = from === firstFrom && to === firstTo && !searchParams.has('from') && !searchParams.has('to');
    if (!isAll) for (const [name, at] of Object.entries({ from, to })) searchParams.set(name, iso(at));
    if (address.href !== location.href) history.replaceState(history.state, '', address);
    if (!isAll) keepInForm({ from: iso(from), to: iso(to) });
    return before !== row;
  };
  const write = () => {
    clearTimeout(timer);
    if (view !== null && writeAddress(view)) void refreshTable();
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(write, SETTLE_MS);
  };
  return {
    write,
    view(next: View) {
      view = next;
      later();
    },
    marks(nextCell: Cell | null, nextSelection: Box | null) {
      const series = (row: number) => data.rowOf(row)?.seriesId;
      // Only when the visitor has chosen another one, because the order of the rows may have changed, and only when its series is known.
      if (nextCell !== written.cell) {
        const id = nextCell && series(nextCell.row);
        if (id === undefined) return;
        marks.set('cursor', nextCell && `${id},${iso(Math.floor(nextCell.at))}`);
      }
      if (nextSelection !== written.selection) {
        const ends = nextSelection && [series(nextSelection.row), series(nextSelection.endRow - 1)];
        if (ends?.includes(undefined)) return;
        marks.set('selected', nextSelection && [...ends!, iso(nextSelection.from), iso(nextSelection.to)].join());
      }
      written = { cell: nextCell, selection: nextSelection };
      if (marks.size > 0) later();
    },
  };
}

/** Adds the visible time to the form, so that another filter keeps it. */
function keepInForm(values: Readonly<Record<string, string>>): void {
  const form = document.getElementById('coverage-filters');
  for (const [name, value] of Object.entries(values)) {
    let field = form?.querySelector<HTMLInputElement>(`input[name=${name}]`);
    if (!field) {
      field = document.createElement('input');
      [field.type, field.name] = ['hidden', name];
      form?.append(field);
    }
    field.value = value;
  }
}

/** Loads the table with the rows that the map shows. */
async function refreshTable(): Promise<void> {
  const asked = location.href;
  const answer = await fetch(asked, { headers: { Accept: 'text/html' } }).catch(() => null);
  // On an error the table stays as it is. The next change of the page loads it again.
  if (answer === null || !answer.ok || answer.redirected || location.href !== asked) return;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const next = page.getElementById('coverage-rows');
  if (next !== null) document.getElementById('coverage-rows')?.replaceChildren(...next.childNodes);
}
