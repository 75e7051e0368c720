/**
 * The chart of a coin. Loads the bars of the span in the address, earlier ones when the visitor scrolls to the left, and the newest ones
 * again when the server reports a change. A click or the keyboard opens the story of a bar.
 */
import { joined, type Loaded, loadBars, type Slot } from './coin-bars.ts';
import { createPainting, type Painting } from './coin-paint.ts';

const place = document.getElementById('chart');
const readout = document.getElementById('chart-readout');
if (place !== null && readout !== null) void start(place, readout);

/** The script loads earlier slots when fewer than so many are left of the screen. */
const NEAR_EDGE = 20;
/** Number of newest slots that are always loaded again, because they may still change. */
const NEWEST = 5;
const ADDRESS_MS = 400;

async function start(place: HTMLElement, readout: HTMLElement): Promise<void> {
  const { source = '', kind, interval = '', quote = '', from, to, follows, at, drawdown } = place.dataset;
  const load = (span: Record<string, string>) => loadBars(source, new URLSearchParams({ interval, quote, ...span }));
  readout.textContent = 'Loading …';
  const first = await load({ from: from!, to: to! });
  if (first === null) {
    readout.textContent = 'The bars could not load. The table below has the newest ones.';
    return;
  }
  let loaded: Loaded = first;
  const isPrices = kind === 'prices';
  const painting = await createPainting(place, { isPrices, showsDrawdown: drawdown === 'true' });
  let slots = painting.show(loaded);
  painting.chart.timeScale().fitContent();
  let chosen = at ? slots.findLastIndex(({ time }) => time <= Date.parse(at) / 1000) : slots.length - 1;
  const showText = (slot: Slot | undefined) => {
    readout.textContent = slot === undefined ? 'There are no slots in this span.' : describe(slot, isPrices);
  };
  const choose = (index: number) => {
    chosen = Math.max(0, Math.min(slots.length - 1, index));
    const slot = slots[chosen];
    showText(slot);
    if (slot === undefined) return;
    reveal(painting, chosen);
    painting.point(slot);
  };
  showText(slots[chosen]);
  if (at) choose(chosen);

  let isLoading = false;
  const loadEarlier = async () => {
    if (isLoading || !loaded.hasEarlier) return;
    isLoading = true;
    const earlier = await load({ from: '0', to: String(loaded.from * 1000) });
    if (earlier !== null) put(joined(loaded, earlier));
    isLoading = false;
  };
  const refreshNewest = async () => {
    if (follows !== 'true' || isLoading) return;
    isLoading = true;
    const newer = await load({ from: String(sinceOf(loaded, slots) * 1000) });
    if (newer !== null) put(joined(loaded, newer));
    isLoading = false;
  };
  /** Earlier bars shift the index of all others, so this finds the chosen slot again. */
  function put(next: Loaded): void {
    const time = slots[chosen]?.time;
    loaded = next;
    slots = painting.show(loaded);
    chosen = time === undefined ? slots.length - 1 : slots.findIndex((slot) => slot.time === time);
  }

  painting.chart.subscribeCrosshairMove(({ logical, point }) => {
    if (point === undefined || logical === undefined) return;
    showText(slots[Math.max(0, Math.min(slots.length - 1, Math.round(logical)))]);
  });
  painting.chart.subscribeClick(({ logical }) => {
    const slot = logical === undefined ? undefined : slots[Math.round(logical)];
    if (slot !== undefined) openStory(slot);
  });
  painting.chart.timeScale().subscribeVisibleLogicalRangeChange((range) => {
    if (range === null) return;
    // The first range also begins at the edge. Earlier slots are loaded only when the visitor goes there.
    if (range.from < NEAR_EDGE && isByVisitor()) void loadEarlier();
    keepAddress(slots, range.from, range.to);
  });
  place.addEventListener('keydown', (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const step = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1, Home: 0, End: slots.length - 1 }[event.key];
    const slot = slots[chosen];
    if (step !== undefined) choose(step);
    else if (event.key === 'Enter' && slot !== undefined) openStory(slot);
    else if (event.key === '+' || event.key === '-') zoom(painting, chosen, event.key === '+' ? 0.7 : 1 / 0.7);
    else return;
    event.preventDefault();
  });
  document.addEventListener('chandler:changed', () => void refreshNewest());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => painting.recolor());
  printAsPicture(place, painting);
}

/** Prints a picture of the chart in light colours, because the browser gives the chart no time for a new layout. */
function printAsPicture(place: HTMLElement, painting: Painting): void {
  let picture: HTMLCanvasElement | null = null;
  addEventListener('beforeprint', () => {
    painting.recolor();
    // Draws at once instead of in the next frame.
    picture = painting.chart.takeScreenshot();
    picture.className = 'on-paper';
    place.after(picture);
  });
  addEventListener('afterprint', () => {
    picture?.remove();
    painting.recolor();
  });
}

/** Where to load again from: the first bar that is not final, among the newest ones of a page. */
function sinceOf({ from, to }: Loaded, slots: readonly Slot[]): number {
  const open = slots
    .slice(-1_000)
    .find(({ bar, hole }) => (hole === null ? !bar?.isFinal : !hole.reason.startsWith('empty')));
  return Math.max(from, Math.min(open?.time ?? to, slots.at(-NEWEST)?.time ?? to));
}

function reveal({ chart }: Painting, index: number): void {
  const range = chart.timeScale().getVisibleLogicalRange();
  if (range === null || (index >= range.from && index <= range.to)) return;
  const by = index < range.from ? index - range.from - 2 : index - range.to + 2;
  chart.timeScale().setVisibleLogicalRange({ from: range.from + by, to: range.to + by });
}

function zoom({ chart }: Painting, index: number, factor: number): void {
  const range = chart.timeScale().getVisibleLogicalRange();
  if (range === null) return;
  const middle = Math.max(range.from, Math.min(range.to, index));
  chart.timeScale().setVisibleLogicalRange({
    from: middle - (middle - range.from) * factor,
    to: middle + (range.to - middle) * factor,
  });
}

let isMoved = false;

/** Whether the visitor changed the range. It also changes while the browser lays out the page. */
function isByVisitor(): boolean {
  return isMoved || document.activeElement?.id === 'chart' || document.querySelector('#chart:hover') !== null;
}

let saving: ReturnType<typeof setTimeout> | undefined;

/** Writes the visible range into the address, so that a link leads to it. The first range comes from the address. */
function keepAddress(slots: readonly Slot[], first: number, last: number): void {
  if (!isByVisitor()) return;
  isMoved = true;
  clearTimeout(saving);
  saving = setTimeout(() => {
    const from = slots[Math.max(0, Math.round(first))];
    if (from === undefined) return;
    const next = slots[Math.round(last) + 1];
    const url = new URL(location.href);
    url.searchParams.delete('span');
    url.searchParams.set('from', isoOf(from.time));
    // When the newest bar is in sight, the page keeps following new bars.
    if (next === undefined) url.searchParams.delete('to');
    else url.searchParams.set('to', isoOf(next.time));
    history.replaceState(null, '', url);
  }, ADDRESS_MS);
}

/** Opens the same page with the story of this slot. */
function openStory({ time }: Slot): void {
  const url = new URL(location.href);
  url.searchParams.set('at', isoOf(time));
  url.hash = 'story';
  location.assign(url);
}

function isoOf(seconds: number): string {
  const text = new Date(seconds * 1000).toISOString();
  return seconds % 86_400 === 0 ? text.slice(0, 10) : `${text.slice(0, 16)}Z`;
}

const NUMBER = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 10 });

function describe({ time, bar, hole }: Slot, isPrices: boolean): string {
  const when = new Date(time * 1000).toISOString().slice(0, 16).replace('T', ' ');
  if (bar === null) return `${when}Z  ${hole?.reason ?? ''}${hole?.detail ? `: ${hole.detail}` : ''}`;
  const text = (value: number | null) => (value === null ? 'null' : NUMBER.format(value));
  const values = isPrices
    ? `price ${text(bar.close)}`
    : `open ${text(bar.open)}  high ${text(bar.high)}  low ${text(bar.low)}  close ${text(bar.close)}`;
  return `${when}Z  ${values}  volume ${text(bar.volume)}  ${bar.state}`;
}
