/** Draws the chart of a coin with the library for charts: candles or a line, volume, drawdown, bands and marks, in the colours of the page. */
import type { IChartApi, ISeriesApi, SeriesMarker, Time, UTCTimestamp } from 'lightweight-charts';
import { createBands } from './coin-bands.ts';
import { type Hole, type Loaded, type Slot, slotsOf } from './coin-bars.ts';

/** Chandler serves the library itself, so that the page loads nothing from other hosts. */
type Library = typeof import('lightweight-charts');
const LIBRARY: string = '/ui/assets/lightweight-charts.js';

export type Painting = {
  readonly chart: IChartApi;
  /** Shows these bars, and returns all slots in order of time. */
  show(loaded: Loaded): readonly Slot[];
  /** Moves the cross hair to this slot. */
  point(slot: Slot): void;
  /** Call it when the colours of the page may have changed. */
  recolor(): void;
};

type Options = { readonly isPrices: boolean; readonly showsDrawdown: boolean };

const COLORS = {
  page: '--card',
  text: '--soft',
  line: '--line',
  up: '--good-fill',
  down: '--bad-fill',
  mark: '--link',
  gap: '--gap-band',
  empty: '--empty-band',
  volume: '--idle-fill',
} as const;
type Colors = Record<keyof typeof COLORS, string>;

export async function createPainting(place: HTMLElement, { isPrices, showsDrawdown }: Options): Promise<Painting> {
  const library = (await import(LIBRARY)) as Library;
  const chart = library.createChart(place, {
    autoSize: true,
    // The library's link adds a style that the content security policy forbids. The page itself names its makers.
    layout: { attributionLogo: false, fontFamily: 'system-ui, sans-serif' },
    rightPriceScale: { scaleMargins: { top: 0.08, bottom: 0.24 } },
    timeScale: { timeVisible: true, secondsVisible: false, minBarSpacing: 0.5 },
    localization: { locale: 'en-GB' },
    crosshair: { mode: library.CrosshairMode.Normal },
    // A vertical drag scrolls the page. Only a pinch or a sideways drag moves the chart.
    handleScroll: { vertTouchDrag: false },
  });
  const prices = isPrices ? chart.addSeries(library.LineSeries) : chart.addSeries(library.CandlestickSeries);
  const volume = chart.addSeries(library.HistogramSeries, { priceScaleId: 'volume', priceFormat: { type: 'volume' } });
  volume.applyOptions({ lastValueVisible: false, priceLineVisible: false });
  chart.priceScale('volume').applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } });
  const drawdown = showsDrawdown ? addDrawdown(chart, library) : null;
  const bands = createBands(chart);
  prices.attachPrimitive(bands);
  const marks = library.createSeriesMarkers(prices as ISeriesApi<'Line'>, []);
  let shown: Loaded | null = null;

  const painting: Painting = {
    chart,
    show(loaded) {
      shown = loaded;
      const colors = readColors(place);
      const slots = slotsOf(loaded);
      applyColors({ chart, prices, isPrices, drawdown }, colors);
      const format = formatOf(slots);
      if (isPrices) (prices as ISeriesApi<'Line'>).setData(slots.map(asPoint));
      else (prices as ISeriesApi<'Candlestick'>).setData(slots.map((slot) => asCandle(slot, colors)));
      prices.applyOptions({ priceFormat: format });
      volume.setData(slots.map((slot) => asVolume(slot, colors)));
      drawdown?.setData(drawdownOf(slots));
      marks.setMarkers(marksOf(slots, colors, isPrices));
      bands.show(loaded.holes, lastSlots(slots), colors);
      return slots;
    },
    point({ time, bar }) {
      const price = bar?.close ?? 0;
      chart.setCrosshairPosition(price, time as UTCTimestamp, prices);
    },
    recolor() {
      if (shown !== null) painting.show(shown);
    },
  };
  return painting;
}

function addDrawdown(chart: IChartApi, library: Library): ISeriesApi<'Area'> {
  const series = chart.addSeries(library.AreaSeries, { invertFilledArea: true, lineWidth: 1 }, 1);
  series.applyOptions({ priceFormat: { type: 'percent' }, title: 'drawdown' });
  chart.panes()[1]?.setHeight(110);
  return series;
}

/** To a script, a custom property is only text. An element that uses it as its colour returns the colour of the present scheme. */
function readColors(place: HTMLElement): Colors {
  const probe = document.createElement('span');
  place.append(probe);
  const entries = Object.entries(COLORS).map(([name, property]) => {
    probe.style.color = `var(${property})`;
    return [name, getComputedStyle(probe).color];
  });
  probe.remove();
  return Object.fromEntries(entries) as Colors;
}

type Painted = {
  readonly chart: IChartApi;
  readonly prices: ISeriesApi<'Line'> | ISeriesApi<'Candlestick'>;
  readonly isPrices: boolean;
  readonly drawdown: ISeriesApi<'Area'> | null;
};

function applyColors(
  { chart, prices, isPrices, drawdown }: Painted,
  { page, text, line, up, down, mark }: Colors,
): void {
  chart.applyOptions({
    layout: { background: { color: page }, textColor: text, panes: { separatorColor: line } },
    grid: { vertLines: { color: line }, horzLines: { color: line } },
    rightPriceScale: { borderColor: line },
    timeScale: { borderColor: line },
    crosshair: {
      vertLine: { color: text, labelBackgroundColor: text },
      horzLine: { color: text, labelBackgroundColor: text },
    },
  });
  if (isPrices) (prices as ISeriesApi<'Line'>).applyOptions({ color: mark, lineWidth: 2 });
  else {
    const colors = {
      upColor: up,
      downColor: down,
      borderUpColor: up,
      borderDownColor: down,
      wickUpColor: up,
      wickDownColor: down,
    };
    (prices as ISeriesApi<'Candlestick'>).applyOptions(colors);
  }
  drawdown?.applyOptions({ lineColor: down, topColor: 'transparent', bottomColor: 'transparent' });
}

function asCandle({ time, bar }: Slot, { up, down }: Colors) {
  const at = time as UTCTimestamp;
  // The upstream sent null, so there is nothing to draw. The table shows it.
  if (bar === null || bar.open === null || bar.high === null || bar.low === null || bar.close === null)
    return { time: at };
  const { open, high, low, close, isFinal } = bar;
  const color = close >= open ? up : down;
  const hollow = isFinal ? {} : { color: 'transparent', borderColor: color, wickColor: color };
  return { time: at, open, high, low, close, ...hollow };
}

function asPoint({ time, bar }: Slot) {
  const at = time as UTCTimestamp;
  return bar === null || bar.close === null ? { time: at } : { time: at, value: bar.close };
}

function asVolume({ time, bar }: Slot, { volume }: Colors) {
  const at = time as UTCTimestamp;
  return bar === null || bar.volume === null ? { time: at } : { time: at, value: bar.volume, color: volume };
}

/** Percent below the highest close so far. */
function drawdownOf(slots: readonly Slot[]) {
  let highest = 0;
  return slots.map(({ time, bar }) => {
    const at = time as UTCTimestamp;
    const close = bar?.close ?? null;
    if (close === null) return { time: at };
    highest = Math.max(highest, close);
    return highest > 0 ? { time: at, value: (close / highest - 1) * 100 } : { time: at };
  });
}

/** A line has no hollow bars, so a mark shows that a price is provisional. */
function marksOf(slots: readonly Slot[], { mark, text }: Colors, isPrices: boolean): SeriesMarker<Time>[] {
  return slots.flatMap(({ time, bar }): SeriesMarker<Time>[] => {
    const at = time as UTCTimestamp;
    if (bar?.isRevised) return [{ time: at, position: 'aboveBar', shape: 'arrowDown', color: mark, size: 0.7 }];
    if (isPrices && bar !== null && !bar.isFinal)
      return [{ time: at, position: 'inBar', shape: 'circle', color: text, size: 0.5 }];
    return [];
  });
}

function lastSlots(slots: readonly Slot[]): ReadonlyMap<Hole, number> {
  const last = new Map<Hole, number>();
  for (const { time, hole } of slots) if (hole !== null) last.set(hole, time);
  return last;
}

/** Enough decimals to tell the prices of this coin apart: a coin may cost 60,000 or 0.00000001. */
function formatOf(slots: readonly Slot[]) {
  const closes = slots.flatMap(({ bar }) => (bar?.close ? [Math.abs(bar.close)] : []));
  const least = closes.length === 0 ? 1 : closes.reduce((a, b) => Math.min(a, b));
  const precision = Math.max(2, Math.min(12, 4 - Math.floor(Math.log10(least))));
  return { type: 'price' as const, precision, minMove: 10 ** -precision };
}
