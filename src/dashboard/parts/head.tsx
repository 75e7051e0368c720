/** The top of every page: the quota that is left, what holds requests, and what needs attention. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import { formatCount, formatCounted, formatInstant } from '../../core/format.ts';
import type { DataAt } from '../../views/dashboard/data-at.ts';
import { Moment } from './moment.tsx';

/** A window of the quota that has a limit. */
export type WindowLeft = {
  readonly name: 'day' | 'month';
  /** Requests that may still be sent, including those reserved for the schedules. */
  readonly left: number;
  /** The part of `left` that is reserved for the schedules. */
  readonly reserved: number;
  readonly limit: number;
  readonly reset: Instant;
  /**
   * The least and the most requests sent when it ends: at the pace so far, and with all that the schedules and the open backfills need. Null when
   * too little is known.
   */
  readonly forecast: { readonly least: number; readonly most: number } | null;
};

/** Something that needs attention. */
export type Chip = { readonly text: string; readonly href: string; readonly kind: 'bad' | 'warn' | 'good' };

export type Head = {
  readonly plan: string;
  readonly windows: readonly WindowLeft[];
  /** Sentences that say what holds all requests, or those of backfills, and until when. */
  readonly holds: readonly string[];
  readonly chips: readonly Chip[];
  readonly dataAt: DataAt;
};

export const HeadFacts: FC<{ readonly head: Head; readonly now: Instant }> = ({ head, now }) => (
  <div id="head" data-live class="wrap">
    <div class="facts">
      {head.windows.length === 0 && <p>plan {head.plan}: requests are unlimited</p>}
      {head.windows.map((window) => (
        <p>{windowText(window)}</p>
      ))}
      <NewestData dataAt={head.dataAt} now={now} />
      {head.chips.map(({ text, href, kind }) => (
        <a class={`chip ${kind}`} href={href}>
          {text}
        </a>
      ))}
    </div>
    {head.holds.map((hold) => (
      <p class="warn">{hold}</p>
    ))}
  </div>
);

const NewestData: FC<{ readonly dataAt: DataAt; readonly now: Instant }> = ({ dataAt: { at, lookedAt }, now }) => {
  if (at !== null)
    return (
      <p>
        newest data <Moment at={at} now={now} />
      </p>
    );
  return lookedAt === 0 ? (
    <p>no data requested yet</p>
  ) : (
    <p class="warn">
      {lookedAt === 1
        ? 'the last request brought no data'
        : `none of the last ${formatCounted(lookedAt, 'request')} brought data`}
    </p>
  );
};

function windowText({ name, left, reserved, limit, reset, forecast }: WindowLeft): string {
  const kept = reserved > 0 ? `, ${formatCount(reserved)} of them reserved for the schedules` : '';
  const sent = forecast === null ? '' : `; forecast: ${rangeOf(forecast)} sent by then`;
  return `${name}: ${formatCount(left)} of ${formatCount(limit)} requests left${kept}, until ${formatInstant(reset)}${sent}`;
}

function rangeOf({ least, most }: { readonly least: number; readonly most: number }): string {
  return least === most ? `about ${formatCount(least)}` : `${formatCount(least)} to ${formatCount(most)}`;
}
