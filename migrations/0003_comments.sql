-- What every table, view and column means: shown by \d+ in psql, by DBeaver, by most notebooks.
comment on schema market is 'Market data for analysts. Times are UTC; a span [from, to) includes its start and not its end. Start with the view market.candles.';
--> statement-breakpoint
comment on schema ops is 'Chandler''s own book-keeping. Its shape may change in any version: do not build on it.';
--> statement-breakpoint
comment on type market.candle_interval is 'Width of a candle, in the upstream''s own spelling. market.width_of(interval) gives it as an interval.';
--> statement-breakpoint
comment on function market.width_of(market.candle_interval) is 'The width of a candle as an interval: width_of(''6h'') = 06:00:00.';
--> statement-breakpoint
comment on view market.candles is 'Every stored candle with the coin it belongs to. Filter by coin_id, quote, interval (a literal, so that only its partitions are read) and open_time.';
--> statement-breakpoint
comment on column market.candles.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
--> statement-breakpoint
comment on column market.candles.symbol is 'Ticker symbol of the coin (not unique): BTC.';
--> statement-breakpoint
comment on column market.candles.quote is 'Currency of the prices: usd or btc.';
--> statement-breakpoint
comment on column market.candles.interval is 'Width of the candles: 5m, 15m, 30m, 1h, 6h, 12h or 24h.';
--> statement-breakpoint
comment on column market.candles.open_time is 'Start of the candle, on the grid of its interval (days are UTC days).';
--> statement-breakpoint
comment on column market.candles.close_time is 'Last second of the candle, as upstream writes it: open_time + width - 1 second.';
--> statement-breakpoint
comment on column market.candles.open is 'First price in the interval, in the quote currency. Null where upstream says null.';
--> statement-breakpoint
comment on column market.candles.high is 'Highest price in the interval, in the quote currency.';
--> statement-breakpoint
comment on column market.candles.low is 'Lowest price in the interval, in the quote currency.';
--> statement-breakpoint
comment on column market.candles.close is 'Last price in the interval, in the quote currency.';
--> statement-breakpoint
comment on column market.candles.volume is 'Volume traded in the interval, as upstream gives it.';
--> statement-breakpoint
comment on column market.candles.market_cap is 'Market capitalisation at the close, as upstream gives it.';
--> statement-breakpoint
comment on column market.candles.is_final is 'True when upstream has given its final answer for this slot; false while the candle may still change.';
--> statement-breakpoint
comment on view market.coverage is 'Per series, how much of what is wanted has its final answer. One slot is one candle width; a covered slot without a candle is known to be empty.';
--> statement-breakpoint
comment on column market.coverage.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
--> statement-breakpoint
comment on column market.coverage.symbol is 'Ticker symbol of the coin (not unique): BTC.';
--> statement-breakpoint
comment on column market.coverage.quote is 'Currency of the prices: usd or btc.';
--> statement-breakpoint
comment on column market.coverage.interval is 'Width of the candles: 5m, 15m, 30m, 1h, 6h, 12h or 24h.';
--> statement-breakpoint
comment on column market.coverage.wanted_from is 'Start of the first wanted span, never before the coin began.';
--> statement-breakpoint
comment on column market.coverage.wanted_to is 'End of the last wanted span, at most now.';
--> statement-breakpoint
comment on column market.coverage.slots_wanted is 'Slots wanted up to now.';
--> statement-breakpoint
comment on column market.coverage.slots_covered is 'Slots upstream has given its final answer for.';
--> statement-breakpoint
comment on column market.coverage.slots_missing is 'Slots wanted and not covered; market.gaps says why, span by span.';
--> statement-breakpoint
comment on column market.coverage.slots_unsettled is 'Of the missing slots, those too young for a final answer.';
--> statement-breakpoint
comment on column market.coverage.covered is 'All spans with a final answer, also outside what is wanted.';
--> statement-breakpoint
comment on column market.coverage.percent_complete is 'Covered slots in percent of the wanted slots old enough to be final; 100 only when none is missing.';
--> statement-breakpoint
comment on view market.gaps is 'Every span that is wanted and not covered, with the reason. No row means nothing is missing.';
--> statement-breakpoint
comment on column market.gaps.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
--> statement-breakpoint
comment on column market.gaps.symbol is 'Ticker symbol of the coin (not unique): BTC.';
--> statement-breakpoint
comment on column market.gaps.quote is 'Currency of the prices: usd or btc.';
--> statement-breakpoint
comment on column market.gaps.interval is 'Width of the candles: 5m, 15m, 30m, 1h, 6h, 12h or 24h.';
--> statement-breakpoint
comment on column market.gaps.gap_from is 'Start of the gap.';
--> statement-breakpoint
comment on column market.gaps.gap_to is 'End of the gap (exclusive).';
--> statement-breakpoint
comment on column market.gaps.slots is 'How many candle slots the gap holds.';
--> statement-breakpoint
comment on column market.gaps.reason is 'not asked yet; provisional: answered, but too young to be final; unconfirmed: answered empty, to be confirmed by a second answer; malformed: the row given was impossible and set aside (market.quarantine); or why upstream refuses it: plan wall, interval, unknown coin, forbidden, bad request.';
--> statement-breakpoint
comment on column market.gaps.detail is 'What upstream said when it refused.';
--> statement-breakpoint
comment on column market.gaps.next_ask_at is 'When it may be asked again; null when nothing has to be waited for (not asked yet) or when it waits for a different plan (refused by a plan wall).';
--> statement-breakpoint
comment on view market.freshness is 'Per series, how old the newest final answer is.';
--> statement-breakpoint
comment on column market.freshness.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
--> statement-breakpoint
comment on column market.freshness.symbol is 'Ticker symbol of the coin (not unique): BTC.';
--> statement-breakpoint
comment on column market.freshness.quote is 'Currency of the prices: usd or btc.';
--> statement-breakpoint
comment on column market.freshness.interval is 'Width of the candles: 5m, 15m, 30m, 1h, 6h, 12h or 24h.';
--> statement-breakpoint
comment on column market.freshness.final_until is 'End of the newest span with a final answer; null when there is none.';
--> statement-breakpoint
comment on column market.freshness.age is 'Time between final_until and now.';
--> statement-breakpoint
comment on column market.freshness.is_tracked is 'True when the series is wanted up to now; false when only a part of the past was asked for.';
--> statement-breakpoint
comment on column market.freshness.priority is 'Higher is asked first.';
--> statement-breakpoint
comment on table market.candle is 'Candles by series number, partitioned by interval and time. Analysts want the view market.candles.';
--> statement-breakpoint
comment on column market.candle.open_time is 'Start of the candle.';
--> statement-breakpoint
comment on column market.candle.open is 'First price in the interval, in the quote currency. Null where upstream says null.';
--> statement-breakpoint
comment on column market.candle.high is 'Highest price in the interval, in the quote currency.';
--> statement-breakpoint
comment on column market.candle.low is 'Lowest price in the interval, in the quote currency.';
--> statement-breakpoint
comment on column market.candle.close is 'Last price in the interval, in the quote currency.';
--> statement-breakpoint
comment on column market.candle.volume is 'Volume traded in the interval, as upstream gives it.';
--> statement-breakpoint
comment on column market.candle.market_cap is 'Market capitalisation at the close, as upstream gives it.';
--> statement-breakpoint
comment on column market.candle.series_id is 'market.series.id.';
--> statement-breakpoint
comment on column market.candle.interval is 'The series interval, repeated here so that partitions prune.';
--> statement-breakpoint
comment on table market.coin is 'Every coin ever seen in the upstreams catalogue. Rows are never deleted: no survivorship bias.';
--> statement-breakpoint
comment on column market.coin.id is 'Upstream id: btc-bitcoin.';
--> statement-breakpoint
comment on column market.coin.name is 'Name, as last seen.';
--> statement-breakpoint
comment on column market.coin.symbol is 'Ticker symbol, as last seen (not unique).';
--> statement-breakpoint
comment on column market.coin.rank is 'Rank by market capitalisation, 1 is first; 0 when the coin has none.';
--> statement-breakpoint
comment on column market.coin.type is 'coin or token; null where upstream does not say.';
--> statement-breakpoint
comment on column market.coin.is_new is 'Upstream marks it as recently added.';
--> statement-breakpoint
comment on column market.coin.is_active is 'False once upstream has stopped updating it.';
--> statement-breakpoint
comment on column market.coin.first_data_at is 'Instant of the first data upstream has; null until upstream has told. Nothing before it is wanted.';
--> statement-breakpoint
comment on column market.coin.first_seen_at is 'When the catalogue first held it.';
--> statement-breakpoint
comment on column market.coin.last_seen_at is 'When the catalogue last held it.';
--> statement-breakpoint
comment on column market.coin.rank_seen_at is 'When upstream last told rank.';
--> statement-breakpoint
comment on table market.coin_change is 'Every change of a coins name, symbol or activity that we saw.';
--> statement-breakpoint
comment on column market.coin_change.coin_id is 'market.coin.id.';
--> statement-breakpoint
comment on column market.coin_change.seen_at is 'When we saw the new value.';
--> statement-breakpoint
comment on column market.coin_change.field is 'name, symbol or is_active.';
--> statement-breakpoint
comment on column market.coin_change.old_value is 'Value before.';
--> statement-breakpoint
comment on column market.coin_change.new_value is 'Value since.';
--> statement-breakpoint
comment on table market.series is 'One row per coin, quote and interval that was ever wanted.';
--> statement-breakpoint
comment on column market.series.id is 'Number of the series, used by market.candle.';
--> statement-breakpoint
comment on column market.series.coin_id is 'market.coin.id.';
--> statement-breakpoint
comment on column market.series.quote is 'Currency of the prices: usd or btc.';
--> statement-breakpoint
comment on column market.series.interval is 'Width of the candles.';
--> statement-breakpoint
comment on column market.series.wanted is 'Spans that were asked for; open-ended when the series is tracked.';
--> statement-breakpoint
comment on column market.series.covered is 'Spans for which upstream has given its final answer.';
--> statement-breakpoint
comment on column market.series.covered_candles is 'How many candles lie inside covered; the other covered slots are known to be empty.';
--> statement-breakpoint
comment on column market.series.priority is 'Higher is asked first.';
--> statement-breakpoint
comment on column market.series.created_at is 'When it was first wanted.';
--> statement-breakpoint
comment on table market.revision is 'The old values of every candle that upstream changed after it was final.';
--> statement-breakpoint
comment on column market.revision.id is 'In order of seeing.';
--> statement-breakpoint
comment on column market.revision.series_id is 'market.series.id.';
--> statement-breakpoint
comment on column market.revision.open_time is 'Start of the candle.';
--> statement-breakpoint
comment on column market.revision.seen_at is 'When we saw the new values.';
--> statement-breakpoint
comment on column market.revision.fetch_id is 'The request that brought them.';
--> statement-breakpoint
comment on column market.revision.open is 'Old value of open.';
--> statement-breakpoint
comment on column market.revision.high is 'Old value of high.';
--> statement-breakpoint
comment on column market.revision.low is 'Old value of low.';
--> statement-breakpoint
comment on column market.revision.close is 'Old value of close.';
--> statement-breakpoint
comment on column market.revision.volume is 'Old value of volume.';
--> statement-breakpoint
comment on column market.revision.market_cap is 'Old value of market cap.';
--> statement-breakpoint
comment on table market.pending is 'Gaps that upstream has answered without a final word, and when to ask again.';
--> statement-breakpoint
comment on column market.pending.series_id is 'market.series.id.';
--> statement-breakpoint
comment on column market.pending.span is 'The gap.';
--> statement-breakpoint
comment on column market.pending.reason is 'provisional: too young to be final; unconfirmed: empty, wants a second answer; malformed: the row given was impossible.';
--> statement-breakpoint
comment on column market.pending.answers is 'How many answers agree so far.';
--> statement-breakpoint
comment on column market.pending.asked_at is 'When it was last asked.';
--> statement-breakpoint
comment on column market.pending.due_at is 'Not to be asked before.';
--> statement-breakpoint
comment on table market.quarantine is 'Rows of answers that cannot be true, as they came, with the reason. They are not in market.candle.';
--> statement-breakpoint
comment on column market.quarantine.id is 'In order of seeing.';
--> statement-breakpoint
comment on column market.quarantine.series_id is 'market.series.id.';
--> statement-breakpoint
comment on column market.quarantine.open_time is 'The open time the row claims; null when it has none that can be read.';
--> statement-breakpoint
comment on column market.quarantine.reason is 'Why it cannot be true.';
--> statement-breakpoint
comment on column market.quarantine.row is 'The row as upstream sent it.';
--> statement-breakpoint
comment on column market.quarantine.fetch_id is 'The request that brought it.';
--> statement-breakpoint
comment on column market.quarantine.seen_at is 'When it came.';
--> statement-breakpoint
comment on table market.refusal is 'What upstream will not give, and why. Counts only while the account has the plan it was refused under.';
--> statement-breakpoint
comment on column market.refusal.id is 'Number of the refusal.';
--> statement-breakpoint
comment on column market.refusal.account_plan is 'The plan that was refused.';
--> statement-breakpoint
comment on column market.refusal.series_id is 'market.series.id; null for a wall, which holds for every series of the interval.';
--> statement-breakpoint
comment on column market.refusal.interval is 'For a wall: the interval it is about.';
--> statement-breakpoint
comment on column market.refusal.span is 'For one series: the span refused.';
--> statement-breakpoint
comment on column market.refusal.depth is 'For a wall: how far back from now the plan sees; null when it does not see the interval at all.';
--> statement-breakpoint
comment on column market.refusal.reason is 'plan wall, interval, unknown coin, forbidden or bad request.';
--> statement-breakpoint
comment on column market.refusal.message is 'What upstream said.';
--> statement-breakpoint
comment on column market.refusal.refused_at is 'When it last said so.';
--> statement-breakpoint
comment on column market.refusal.fetch_id is 'The request it answered.';
--> statement-breakpoint
comment on table market.candle_5m is 'The 5m candles of market.candle.';
--> statement-breakpoint
comment on table market.candle_15m is 'The 15m candles of market.candle.';
--> statement-breakpoint
comment on table market.candle_30m is 'The 30m candles of market.candle.';
--> statement-breakpoint
comment on table market.candle_1h is 'The 1h candles of market.candle.';
--> statement-breakpoint
comment on table market.candle_6h is 'The 6h candles of market.candle.';
--> statement-breakpoint
comment on table market.candle_12h is 'The 12h candles of market.candle.';
--> statement-breakpoint
comment on table market.candle_24h is 'The 24h candles of market.candle.';
