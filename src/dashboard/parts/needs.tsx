/** What needs attention: each with its reason, its price, and what the operator can do. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import { formatCounted, formatInstant } from '../../core/format.ts';

/** One thing that needs attention. */
export type Need = {
  /** What, since when, why, and what to do. */
  readonly text: string;
  readonly since: Instant | null;
  readonly kind: 'bad' | 'warn';
  /** Number of requests that fixing it costs. Null when it has no price, or when nobody knows the price beforehand. */
  readonly requests: number | null;
  /** Set when the requests are needed each day. */
  readonly isDaily?: true;
  readonly more?: { readonly text: string; readonly href: string };
  readonly button: { readonly text: string; readonly href: string };
};

export const Needs: FC<{ readonly needs: readonly Need[] }> = ({ needs }) =>
  needs.length === 0 ? (
    <p class="good">
      Nothing. No request is held, and no backfill failed in the last seven days. Everything that is missing for more
      than two days is being fetched, or cannot be requested now.
    </p>
  ) : (
    <ul class="needs">
      {needs.map(({ text, since, kind, button, more, ...price }) => (
        <li>
          <p>
            <span class={kind}>{kind === 'bad' ? 'Problem' : 'Warning'}</span>
            {since !== null && `, since ${formatInstant(since)}`}: {text}
          </p>
          <Price {...price} />
          <a class="button" href={button.href}>
            {button.text}
          </a>
          {more !== undefined && (
            <a class="button" href={more.href}>
              {more.text}
            </a>
          )}
        </li>
      ))}
    </ul>
  );

const Price: FC<Pick<Need, 'requests' | 'isDaily'>> = ({ requests, isDaily }) => {
  if (requests === null) return <span />;
  const text = requests === 0 ? 'no requests' : formatCounted(requests, 'request');
  return (
    <span class="nowrap">
      {text}
      {isDaily ? ' more per day' : ''}
    </span>
  );
};
