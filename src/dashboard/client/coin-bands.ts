/** The bands behind a chart: slots without a bar, in the colour of their reason, with the reason's name if there is room. */
import type { IChartApi, IPrimitivePaneRenderer, ISeriesPrimitive, Time, UTCTimestamp } from 'lightweight-charts';
import type { Hole } from './coin-bars.ts';

type BandColors = { readonly gap: string; readonly empty: string; readonly text: string };

const FONT_PX = 11;

type Bands = ISeriesPrimitive<Time> & {
  /** `lastOf`: the last slot of each hole. */
  show(holes: readonly Hole[], lastOf: ReadonlyMap<Hole, number>, colors: BandColors): void;
};

export function createBands(chart: IChartApi): Bands {
  let holes: readonly Hole[] = [];
  let last: ReadonlyMap<Hole, number> = new Map();
  let colors: BandColors = { gap: 'transparent', empty: 'transparent', text: 'transparent' };
  let update: () => void = () => undefined;
  const edge = (time: number) => chart.timeScale().timeToCoordinate(time as UTCTimestamp);
  const renderer: IPrimitivePaneRenderer = {
    draw: () => undefined,
    drawBackground: (target) =>
      target.useBitmapCoordinateSpace(({ context, bitmapSize, horizontalPixelRatio: ratio }) => {
        const half = chart.timeScale().options().barSpacing / 2;
        context.font = `${FONT_PX * ratio}px system-ui, sans-serif`;
        context.textBaseline = 'top';
        for (const hole of holes) {
          const [left, right] = [edge(hole.from), edge(last.get(hole) ?? hole.from)];
          if (left === null || right === null) continue;
          const x = (left - half) * ratio;
          const width = Math.max(ratio, (right - left + 2 * half) * ratio);
          if (x + width < 0 || x > bitmapSize.width) continue;
          context.fillStyle = hole.reason.startsWith('empty') ? colors.empty : colors.gap;
          context.fillRect(x, 0, width, bitmapSize.height);
          const start = Math.max(x, 0) + 4 * ratio;
          if (context.measureText(hole.reason).width > Math.min(x + width, bitmapSize.width) - start) continue;
          context.fillStyle = colors.text;
          context.fillText(hole.reason, start, 4 * ratio);
        }
      }),
  };
  const view = { zOrder: () => 'bottom' as const, renderer: () => renderer };
  return {
    attached: ({ requestUpdate }: { requestUpdate: () => void }) => {
      update = requestUpdate;
    },
    paneViews: () => [view],
    show(nextHoles, lastOf, nextColors) {
      [holes, last, colors] = [nextHoles, lastOf, nextColors];
      update();
    },
  };
}
