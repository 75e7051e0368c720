/** The catalogue of the made-up market (people, tags, exchanges, contracts …) at the instant of its clock. */
import type { Clock, Instant } from '../../clock.ts';
import type { CoinDetails, IdChange } from '../../contract/record/catalogue.ts';
import type { Catalogue, TickerHistoryQuery } from '../../contract/record/market-data.ts';
import type { CoinSummary } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import { convertBy } from '../currencies.ts';
import { below, mix } from '../hash.ts';
import { type CandlesBetween, historyOf } from '../history.ts';
import { createMadeUpContracts } from './made-up-contracts.ts';
import { madeUpDetails, madeUpEvents } from './made-up-details.ts';
import type { MadeUpExchanges } from './made-up-exchanges.ts';
import { createMadeUpMappings } from './made-up-mappings.ts';
import { allPeople, madeUpPerson, madeUpTeam } from './made-up-people.ts';
import { createMadeUpSearch } from './made-up-search.ts';
import { madeUpIcos, madeUpTags, tagsOf } from './made-up-tags.ts';
import { spotOf } from './made-up-ticker.ts';
import type { MadeUpCoin, MadeUpWorld } from './made-up-world.ts';
import { memoPerMinute, once } from './memo.ts';

type CatalogueParts = {
  readonly world: MadeUpWorld;
  readonly clock: Clock;
  readonly exchanges: MadeUpExchanges;
  summaryOf(coin: MadeUpCoin, now: Instant): CoinSummary;
  candlesOf(coin: MadeUpCoin, quote: TickerHistoryQuery['quote'], now: Instant): CandlesBetween;
};

const ID_CHANGES_PER_PAGE = 100;

export function createMadeUpCatalogue(parts: CatalogueParts): Catalogue {
  const { world, clock, exchanges, summaryOf, candlesOf } = parts;
  const contracts = createMadeUpContracts(world);
  const icos = madeUpIcos(world);
  const knownCoins = (now: Instant) => world.coins.filter((coin) => coin.start < now);
  const allTags = memoPerMinute((_: null, now) =>
    madeUpTags(
      knownCoins(now),
      icos.filter((ico) => ico.start < now),
    ),
  );
  const tagsNow = () => allTags(null, clock.now());
  const people = once(() => allPeople(world));
  const personById = once(() => new Map(people().map((person) => [person.id, person])));
  const mappings = createMadeUpMappings(world);
  const search = createMadeUpSearch({ world, icos, everybody: people, summaryOf, tags: tagsNow });

  /** Calls `make` for a coin that is known now; null for any other coin. */
  const about = async <T>(coinId: string, make: (coin: MadeUpCoin, now: Instant) => T): Promise<T | null> => {
    const now = clock.now();
    const coin = world.find(coinId);
    return coin && coin.start < now ? make(coin, now) : null;
  };
  const details = (coin: MadeUpCoin, now: Instant): CoinDetails => {
    const own = contracts.of(coin, now);
    const tags = tagsOf(coin.key).map(({ id, name }) => {
      const { coin_counter, ico_counter } = tagsNow().find((tag) => tag.id === id)!;
      return { id, name, coin_counter, ico_counter };
    });
    const platform = (own[0] && world.find(own[0].platform)) ?? null;
    return madeUpDetails(
      coin,
      summaryOf(coin, now),
      { tags, team: madeUpTeam(world, coin), contracts: own, platform },
      now,
    );
  };
  const priced = (coinId: string, now: Instant) => {
    const coin = world.find(coinId);
    if (!coin || coin.start >= now || now >= coin.end) return null;
    return {
      name: coin.name,
      dollars: spotOf(world, coin, 'USD', now).price,
      at: Math.floor(now / 60_000) * 60_000,
    };
  };

  return {
    coin: (coinId) => about(coinId, details),
    coinEvents: (coinId) => about(coinId, madeUpEvents),
    coinExchanges: (coinId) => about(coinId, exchanges.ofCoin),
    coinMarkets: ({ coinId, quotes }) => about(coinId, (coin, now) => exchanges.marketsOfCoin(coin, quotes, now)),
    tickerHistory: (query) => about(query.coinId, (coin, now) => historyOf(query, candlesOf(coin, query.quote, now))),
    exchange: async ({ exchangeId, quotes }) => exchanges.one(exchangeId, quotes, clock.now()),
    exchangeMarkets: async ({ exchangeId, quotes }) => exchanges.markets(exchangeId, quotes, clock.now()),
    tags: async () => tagsNow(),
    tag: async (tagId) => tagsNow().find(({ id }) => id === tagId) ?? null,
    person: async (personId) => {
      const person = personById().get(personId);
      return person ? madeUpPerson(world, person, clock.now()) : null;
    },
    platforms: async () => contracts.platforms(clock.now()).map(({ id }) => id),
    contracts: async (platformId) => contracts.on(platformId, clock.now()),
    coinOfContract: async ({ platformId, address }) => {
      const coin = contracts.coinAt(platformId, address, clock.now());
      return coin && { coinId: coin.id };
    },
    search: async (query) => search(query, clock.now()),
    convert: async (query) => {
      const now = clock.now();
      return convertBy((id) => priced(id, now), { ...query, now, seed: world.seed });
    },
    mapping: async (query) => mappings(query, clock.now()),
    idChanges: async ({ page }) =>
      knownCoins(clock.now())
        .filter(wasRenamed)
        .sort((a, b) => b.start - a.start)
        .slice((page - 1) * ID_CHANGES_PER_PAGE, page * ID_CHANGES_PER_PAGE)
        .map(idChangeOf),
  };
}

/** One coin in forty got its id when it was listed; before that, its id marked it as a duplicate. */
function wasRenamed(coin: MadeUpCoin): boolean {
  return coin.index >= 3 && below(40, mix(coin.key, 801)) === 0;
}

function idChangeOf(coin: MadeUpCoin): IdChange {
  return {
    currency_id: coin.id,
    old_id: `${coin.id}-duplicate-1`,
    new_id: coin.id,
    changed_at: formatTime(coin.start),
  };
}
