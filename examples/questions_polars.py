"""Questions to exported files, with Polars: python3 examples/questions_polars.py files"""

# %% Read: hive folders become columns.
import json
import sys
from math import sqrt
from pathlib import Path

import polars as pl

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "files")
LARGEST = 3
OF_DAYS = (pl.col("interval") == "24h") & (pl.col("quote") == "usd")

candles = (
    pl.scan_parquet(FOLDER / "candles/**/*.parquet", hive_partitioning=True)
    .filter(OF_DAYS)
    .select("coin_id", "open_time", "close", "market_cap", "is_final")
    .sort("coin_id", "open_time")
    .collect()
)
days = candles.filter(pl.col("close").is_not_null())
known = days.with_columns(known_at=pl.col("open_time").dt.offset_by("1d"))
begin, end = days["open_time"].min(), days["open_time"].max()

# %% universe: the largest three of each month, as known when it begins, and what they brought; beside them the largest three of today.
# Where the last day is missing, the one before it counts; a coin without a market cap has no place.
months = pl.datetime_range(begin, end, "1d", eager=True, time_zone="UTC").dt.offset_by("1d")
months = months.filter((months.dt.day() == 1) & (months > begin)).sort()
at_begin = (
    days.select("coin_id")
    .unique()
    .join(pl.DataFrame({"begins": months}), how="cross")
    .sort("begins")
    .join_asof(known.filter(pl.col("market_cap") > 0).sort("known_at"), left_on="begins", right_on="known_at", by="coin_id", tolerance="1d")
    .select("begins", "coin_id", "close", "market_cap")
    .drop_nulls("market_cap")
    .sort(["begins", "market_cap", "coin_id"], descending=[False, True, False])
    .with_columns(place=pl.int_range(pl.len()).over("begins"), ends=pl.col("begins").dt.offset_by("1mo"))
)
at_end = at_begin.sort("ends").join_asof(
    known.select("coin_id", "known_at", later="close").sort("known_at"), left_on="ends", right_on="known_at", by="coin_id"
)
today = at_begin.filter((pl.col("begins") == months.max()) & (pl.col("place") < LARGEST))["coin_id"]
brought = pl.col("later") / pl.col("close") - 1
universe = (
    at_end.filter(pl.col("begins") < months.max())
    .group_by("begins")
    .agg(
        largest_then=brought.filter(pl.col("place") < LARGEST).mean(),
        largest_today=brought.filter(pl.col("coin_id").is_in(today.implode())).mean(),
    )
    .sort("begins")
    .select(pl.col("begins").dt.strftime("%Y-%m-%d").alias("month"), "largest_then", "largest_today")
)

# %% volatility: of the daily returns of each coin in its last thirty days, for a year. Only of final candles: that of today still moves.
# A hole of a day costs two returns, because no return spans a hole.
is_next_day = pl.col("open_time").diff().over("coin_id") == pl.duration(days=1)
volatility = (
    days.filter(pl.col("is_final"))
    .with_columns(log_return=pl.when(is_next_day).then(pl.col("close").log().diff().over("coin_id")))
    .filter(pl.col("open_time") > pl.col("open_time").max().over("coin_id") - pl.duration(days=30))
    .group_by("coin_id")
    .agg(volatility=pl.col("log_return").std() * sqrt(365), returns=pl.col("log_return").count())
    .filter(pl.col("returns") > 1)
    .sort("coin_id")
)

# %% as_of: the last price that was known at noon of the second day of each month. A candle is known when its slot has ended.
noons = pl.DataFrame({"at": months.dt.offset_by("36h")}).filter(pl.col("at") <= end)
events = days.select("coin_id").unique().join(noons, how="cross").sort("at")
as_of = (
    events.join_asof(known.sort("known_at"), left_on="at", right_on="known_at", by="coin_id")
    .drop_nulls("close")
    .sort("coin_id", "at")
    .select(
        "coin_id",
        pl.col("at").dt.strftime("%Y-%m-%d").alias("day"),
        "close",
        age_hours=(pl.col("at") - pl.col("known_at")).dt.total_seconds() / 3600,
    )
)

# %% missing: days without a candle. What the table of gaps has is not known; of the others it is known that there was no candle.
unknown = pl.read_parquet(FOLDER / "gaps/part.parquet").filter(OF_DAYS).group_by("coin_id", "reason").agg(days=pl.col("slots").sum())
empty = (
    pl.read_parquet(FOLDER / "coverage/part.parquet")
    .filter(OF_DAYS)
    .join(candles.filter(pl.col("is_final")).group_by("coin_id").len("final"), on="coin_id", how="left")
    .select(
        "coin_id",
        reason=pl.lit("no candle"),
        days=pl.col("slots_covered") - pl.col("final").fill_null(0).cast(pl.Int64),
    )
)
missing = pl.concat([unknown, empty], how="vertical_relaxed").filter(pl.col("days") > 0).sort("coin_id", "reason")

# %% The answers.
answers = {"universe": universe, "volatility": volatility, "as_of": as_of, "missing": missing}
print(json.dumps({name: table.to_dicts() for name, table in answers.items()}, indent=1))
