/** Links from one page of a long list to the next, older one, and back to the newest. */
import type { FC } from 'hono/jsx';
import { withFields } from '../../parts/address.ts';

/** `next`: the next page begins before this number. Null on the last page. */
export const Older: FC<{
  readonly url: URL;
  readonly next: number | null;
  readonly text: string;
  /** The anchor at which the linked page opens. */
  readonly anchor?: string;
}> = ({ url, next, text, anchor }) => {
  const isNewest = !url.searchParams.get('before');
  const place = anchor === undefined ? '' : `#${anchor}`;
  if (next === null && isNewest) return <span />;
  return (
    <p class="actions">
      {!isNewest && (
        <a class="button" href={`${withFields(url, { before: null })}${place}`}>
          Back to the newest
        </a>
      )}
      {next !== null && (
        <a class="button" rel="next" href={`${withFields(url, { before: String(next) })}${place}`}>
          {text}
        </a>
      )}
    </p>
  );
};
