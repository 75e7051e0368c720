# Questions to exported files, with base R: Rscript examples/questions.R csv
# (Parquet: read it with the package arrow, or with duckdb.)

folder <- c(commandArgs(trailingOnly = TRUE), "csv")[1]
largest <- 3
of_days <- function(name) {
  table <- read.csv(file.path(folder, paste0(name, ".csv")))
  table[table$interval == "24h" & table$quote == "usd", ]
}
instant <- function(text) as.POSIXct(text, format = "%Y-%m-%dT%H:%M:%S", tz = "UTC")
none <- function(...) as.data.frame(sapply(c(...), function(column) character()), stringsAsFactors = FALSE)
print_answer <- function(name, table) {
  cat("#", name, "\n")
  write.csv(format(table, digits = 17, trim = TRUE), row.names = FALSE, quote = FALSE)
}

candles <- of_days("candles")
days <- candles[!is.na(candles$close), c("coin_id", "open_time", "close", "market_cap", "is_final")]
days$day <- as.Date(instant(days$open_time))
days <- days[order(days$coin_id, days$day), ]
coins <- sort(unique(days$coin_id))
by_coin <- split(days, days$coin_id)
# The last close known when a day begins: the one of the day before, or of the last one that had a candle.
close_before <- function(coin, day) {
  rows <- by_coin[[coin]]
  tail(rows$close[rows$day < day], 1)
}

# universe: the largest three of each month, as known when it begins, and what they brought; beside them the largest three of today.
# Where the last day is missing, the one before it counts; a coin without a market cap has no place.
first_of <- function(day) as.Date(format(day, "%Y-%m-01"))
first <- first_of(min(days$day) + 32)
months <- if (first > max(days$day) + 1) first[0] else seq(first, max(days$day) + 1, by = "month")
known <- function(begins) {
  rows <- days[days$day >= begins - 2 & days$day < begins & !is.na(days$market_cap) & days$market_cap > 0, ]
  rows <- rows[!duplicated(rows$coin_id, fromLast = TRUE), ]
  rows[order(-rows$market_cap, rows$coin_id), ]
}
brought <- function(rows, ends) if (nrow(rows) == 0) NA else mean(sapply(rows$coin_id, close_before, day = ends) / rows$close - 1)
today <- if (length(months) > 0) head(known(months[length(months)])$coin_id, largest)
universe <- do.call(rbind, lapply(seq_len(max(0, length(months) - 1)), function(i) {
  rows <- known(months[i])
  if (nrow(rows) > 0) data.frame(
    month = as.character(months[i]),
    largest_then = brought(head(rows, largest), months[i + 1]),
    largest_today = brought(rows[rows$coin_id %in% today, ], months[i + 1])
  )
}))
print_answer("universe", if (is.null(universe)) none("month", "largest_then", "largest_today") else universe)

# volatility: of the daily returns of each coin in its last thirty days, for a year. Only of final candles: that of today still moves.
# A hole of a day costs two returns, because no return spans a hole.
is_final <- function(rows) rows$is_final %in% c(TRUE, "true")
volatility <- do.call(rbind, lapply(coins, function(coin) {
  rows <- by_coin[[coin]]
  rows <- rows[is_final(rows), ]
  if (nrow(rows) < 3) return(NULL)
  ends <- rows$day[-1]
  returns <- diff(log(rows$close))[diff(rows$day) == 1 & ends > max(ends) - 30]
  if (length(returns) > 1) data.frame(coin_id = coin, volatility = sd(returns) * sqrt(365), returns = length(returns))
}))
print_answer("volatility", if (is.null(volatility)) none("coin_id", "volatility", "returns") else volatility)

# as_of: the last price that was known at noon of the second day of each month. A candle is known when its slot has ended.
noons <- months[months + 2 <= max(days$day)] + 1
as_of <- do.call(rbind, lapply(coins, function(coin) {
  rows <- by_coin[[coin]]
  found <- findInterval(as.numeric(noons), as.numeric(rows$day + 1))
  at <- noons[found > 0]
  rows <- rows[found[found > 0], ]
  data.frame(coin_id = rep(coin, length(at)), day = as.character(at), close = rows$close, age_hours = as.numeric(at - (rows$day + 1)) * 24 + 12)
}))
print_answer("as_of", as_of)

# missing: days without a candle. What the table of gaps has is not known; of the others it is known that there was no candle.
gaps <- of_days("gaps")
coverage <- of_days("coverage")
unknown <- if (nrow(gaps) > 0) aggregate(slots ~ coin_id + reason, gaps, sum) else data.frame(coin_id = character(), reason = character(), slots = integer())
final <- table(factor(candles$coin_id[is_final(candles)], levels = coverage$coin_id))
empty <- data.frame(coin_id = coverage$coin_id, reason = rep("no candle", nrow(coverage)), slots = coverage$slots_covered - as.integer(final))
missing <- rbind(unknown, empty)
missing <- missing[missing$slots > 0, ]
missing <- missing[order(missing$coin_id, missing$reason), ]
names(missing)[3] <- "days"
print_answer("missing", missing)
