-- Each slot has one owner: commands say which coins they are about, too.
comment on column ops.backfill.coin_ids is 'The coins that were meant, in the order they are filled; null for a command that an earlier version recorded.';
comment on column ops.backfill.left_requests is 'Requests that are still to be sent, as last counted: of the slots that it owns.';
comment on column ops.backfill.planned_requests is 'What it was to cost; of the service: without slots that backfills before it owned.';
comment on column ops.backfill_progress.coins is 'How many coins; null for a command that an earlier version recorded.';
comment on column market.series.wanted is 'Spans that somebody requested and did not cancel; open-ended when the series is tracked.';
comment on column market.freshness.seen_until is 'Up to this instant everything that upstream had is here, candles that are not final yet included; null when no answer about its newest end is known.';
