/** Candles that were still open in the last answer about them, and until when their data reach (upstream-api.md, 1.1 no 6). */
import type { Instant } from '../../clock.ts';
import { contains, type Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';

export type OpenCandle = { readonly openTime: Instant; readonly closeTime: Instant };

/** Makes `open` the only open candles of the series inside `within`. `isAny`: the series has some already. */
export async function replaceOpenCandles(
  tx: SqlOrTransaction,
  seriesId: number,
  open: readonly OpenCandle[],
  { within, isAny }: { readonly within: Spans; readonly isAny: boolean },
): Promise<void> {
  const inside = open.filter(({ openTime }) => contains(within, openTime));
  if (isAny) {
    await tx`
      delete from market.open_candle
      where series_id = ${seriesId} and ${within}::tstzmultirange @> open_time`;
  }
  if (inside.length === 0) return;
  await tx`
    insert into market.open_candle (series_id, open_time, close_time)
    select ${seriesId}, o, c
    from unnest(${inside.map((c) => c.openTime)}::timestamptz[], ${inside.map((c) => c.closeTime)}::timestamptz[]) as u(o, c)`;
}
