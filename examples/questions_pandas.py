"""Questions to exported files, with pandas: python3 examples/questions_pandas.py files"""

# %% Read. Parquet needs pyarrow; CSV (--format csv --layout single) needs nothing else.
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "files")
DAY = pd.Timedelta(days=1)
LARGEST = 3


def read(name):
    csv = FOLDER / f"{name}.csv"
    if csv.exists():
        # Otherwise pandas reads some prices with another last digit.
        table = pd.read_csv(csv, float_precision="round_trip")
        for column in table.columns:
            if column.endswith(("_time", "_from", "_to")):
                # Some instants have a fraction of a second.
                table[column] = pd.to_datetime(table[column].astype("string").str.slice(0, 19), format="%Y-%m-%dT%H:%M:%S", utc=True)
        return table
    return pd.read_parquet(FOLDER / name)


def of_days(table):
    return table[(table["interval"] == "24h") & (table["quote"] == "usd")]


candles = of_days(read("candles"))
days = candles.dropna(subset=["close"]).sort_values(["coin_id", "open_time"])


def by_day(values):
    table = days.pivot(index="open_time", columns="coin_id", values=values).astype(float)
    return table.reindex(pd.date_range(table.index[0], table.index[-1], freq="D"))  # also days that all coins lack


close, market_cap = by_day("close"), by_day("market_cap")

# %% universe: the largest three of each month, as known when it begins, and what they brought; beside them the largest three of today.
# Where the last day is missing, the one before it counts; a coin without a market cap has no place.
first = (close.index[0] + 32 * DAY).replace(day=1)
months = pd.date_range(first, close.index[-1] + DAY, freq="MS")
last_known = close.ffill()
has_cap = market_cap > 0
cap_known, close_known = market_cap.where(has_cap).ffill(limit=1), close.where(has_cap).ffill(limit=1)


def largest(at):
    known = cap_known.loc[at - DAY].dropna()
    table = pd.DataFrame({"cap": known, "coin": known.index})
    return list(table.sort_values(["cap", "coin"], ascending=[False, True]).head(LARGEST)["coin"])


def brought(coins, begins, ends):
    coins = [coin for coin in coins if pd.notna(close_known.at[begins - DAY, coin])]
    if not coins:
        return None
    return float((last_known.loc[ends - DAY, coins] / close_known.loc[begins - DAY, coins] - 1).mean())


today = largest(months[-1]) if len(months) > 0 else []
universe = [
    {"month": begins.strftime("%Y-%m-%d"), "largest_then": brought(largest(begins), begins, ends), "largest_today": brought(today, begins, ends)}
    for begins, ends in zip(months[:-1], months[1:])
    if largest(begins)
]

# %% volatility: of the daily returns of each coin in its last thirty days, for a year. Only of final candles: that of today still moves.
# A hole of a day costs two returns, because no return spans a hole.
final_days = days[days["is_final"]]
opens = final_days.groupby("coin_id")["open_time"]
returns = np.log(final_days["close"]).groupby(final_days["coin_id"]).diff().where(opens.diff() == DAY)
last_returns = returns[final_days["open_time"] > opens.transform("max") - 30 * DAY]
by_coin = last_returns.groupby(final_days["coin_id"]).agg(["std", "count"])
volatility = [
    {"coin_id": coin, "volatility": float(row["std"] * np.sqrt(365)), "returns": int(row["count"])}
    for coin, row in by_coin.iterrows()
    if row["count"] > 1
]

# %% as_of: the last price that was known at noon of the second day of each month. A candle is known when its slot has ended.
events = pd.MultiIndex.from_product(
    [close.columns, pd.date_range(first, close.index[-1] - pd.Timedelta(hours=36), freq="MS") + pd.Timedelta(hours=36)], names=["coin_id", "at"]
).to_frame(index=False)
known = days.assign(known_at=days["open_time"] + DAY)[["coin_id", "known_at", "close"]]
joined = pd.merge_asof(events.sort_values("at"), known.sort_values("known_at"), left_on="at", right_on="known_at", by="coin_id")
joined = joined.dropna(subset=["close"]).sort_values(["coin_id", "at"])
as_of = [
    {"coin_id": row.coin_id, "day": row.at.strftime("%Y-%m-%d"), "close": float(row.close), "age_hours": (row.at - row.known_at) / pd.Timedelta(hours=1)}
    for row in joined.itertuples(index=False)
]

# %% missing: days without a candle. What the table of gaps has is not known; of the others it is known that there was no candle.
unknown = of_days(read("gaps")).groupby(["coin_id", "reason"])["slots"].sum()
covered = of_days(read("coverage")).set_index("coin_id")["slots_covered"]
final = candles[candles["is_final"]].groupby("coin_id").size()
empty = covered - final.reindex(covered.index, fill_value=0)
rows = [(coin, reason, int(count)) for (coin, reason), count in unknown.items()] + [(coin, "no candle", int(count)) for coin, count in empty.items()]
missing = [{"coin_id": coin, "reason": reason, "days": count} for coin, reason, count in sorted(rows) if count > 0]

# %% The answers.
print(json.dumps({"universe": universe, "volatility": volatility, "as_of": as_of, "missing": missing}, indent=1))
