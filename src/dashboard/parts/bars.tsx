/** Numbers of the last hours as small bars, and as a table for visitors who cannot see them. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import { formatCount, formatInstant } from '../../core/format.ts';
import { Table } from './table.tsx';

type BarPart = { readonly name: string; readonly kind: 'good' | 'warn' | 'bad' | 'idle' };
/** `counts`: one number for each part, in the same order. */
type Bar = { readonly from: Instant; readonly counts: readonly number[] };

const WIDTH = 22;
const HEIGHT = 72;

export const Bars: FC<{
  readonly caption: string;
  readonly parts: readonly BarPart[];
  readonly bars: readonly Bar[];
}> = ({ caption, parts, bars }) => {
  const most = Math.max(1, ...bars.map(({ counts }) => counts.reduce((sum, n) => sum + n, 0)));
  const width = bars.length * WIDTH;
  return (
    <figure>
      <svg
        viewBox={`0 0 ${width} ${HEIGHT + 18}`}
        width={width}
        role="img"
        aria-label={`${caption}; the table below has the numbers`}
      >
        <line class="axis" x1="0" x2={width} y1={HEIGHT} y2={HEIGHT} />
        {bars.map((bar, i) => (
          <g>
            <title>{titleOf(bar, parts)}</title>
            {stacked(bar, most).map(({ y, height }, part) =>
              height > 0 ? (
                <rect class={parts[part]!.kind} x={i * WIDTH + 2} width={WIDTH - 4} y={y} height={height} />
              ) : (
                ''
              ),
            )}
            {i % 6 === 0 && (
              <text x={i * WIDTH} y={HEIGHT + 14}>
                {new Date(bar.from).toISOString().slice(11, 16)}
              </text>
            )}
          </g>
        ))}
      </svg>
      <ul class="legend">
        {parts.map(({ name, kind }) => (
          <LegendEntry kind={kind} name={name} />
        ))}
      </ul>
      <details>
        <summary>As a table</summary>
        <Table
          caption={caption}
          rows={bars}
          empty="Nothing yet."
          columns={[
            { title: 'From', cell: ({ from }) => formatInstant(from) },
            ...parts.map(({ name }, part) => ({
              title: name,
              isNumber: true,
              cell: ({ counts }: Bar) => formatCount(counts[part]!),
            })),
          ]}
        />
      </details>
    </figure>
  );
};

/** An entry of the legend: the colour of this kind, and what it means. */
export const LegendEntry: FC<{ readonly kind: string; readonly name: string }> = ({ kind, name }) => (
  <li>
    <svg width="10" height="10" aria-hidden="true">
      <rect class={kind} width="10" height="10" />
    </svg>{' '}
    {name}
  </li>
);

/** From the bottom up, in pixels. Every count above zero stays visible, however small it is. */
function stacked({ counts }: Bar, most: number): readonly { readonly y: number; readonly height: number }[] {
  let bottom = HEIGHT;
  return counts.map((count) => {
    const height = count === 0 ? 0 : Math.max(2, Math.round((count / most) * (HEIGHT - 4)));
    bottom -= height;
    return { y: Math.max(0, bottom), height };
  });
}

function titleOf({ from, counts }: Bar, parts: readonly BarPart[]): string {
  const texts = counts.flatMap((count, part) => (count === 0 ? [] : [`${formatCount(count)} ${parts[part]!.name}`]));
  return `${formatInstant(from)}: ${texts.length === 0 ? 'none' : texts.join(', ')}`;
}
