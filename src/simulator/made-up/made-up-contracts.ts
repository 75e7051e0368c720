/** Contracts of the made-up market: tokens live on platforms, which are coins, and an address identifies its token. */
import type { Instant } from '../../clock.ts';
import type { CoinDetails, PlatformContract } from '../../contract/record/catalogue.ts';
import { below, mix, unit } from '../hash.ts';
import type { MadeUpCoin, MadeUpWorld } from './made-up-world.ts';
import { once } from './memo.ts';

type Contract = { readonly coin: MadeUpCoin; readonly platform: MadeUpCoin; readonly address: string };

type MadeUpContracts = {
  /** The contracts of a coin at `now`, the main one first. A contract is never older than its platform. */
  of(coin: MadeUpCoin, now: Instant): NonNullable<CoinDetails['contracts']>;
  platforms(now: Instant): MadeUpCoin[];
  /** Null when the coin is not a platform. */
  on(platformId: string, now: Instant): PlatformContract[] | null;
  coinAt(platformId: string, address: string, now: Instant): MadeUpCoin | null;
};

const MOST_PLATFORMS = 5;

export function createMadeUpContracts(world: MadeUpWorld): MadeUpContracts {
  const platforms = world.coins
    .slice(1, 100)
    .filter((coin) => coin.index === 1 || (coin.index > 2 && coin.type === 'coin' && coin.end === Infinity))
    .slice(0, MOST_PLATFORMS);
  const isKnown = (coin: MadeUpCoin, now: Instant) => coin.start < now;
  const wellKnown = once(() => world.coins.find((coin) => coin.kind === 'plain' && isFirstOnEther(coin, platforms)));
  const contractsOf = (coin: MadeUpCoin): Contract[] => {
    const [main, ...others] = chosen(coin, platforms);
    if (main === undefined || coin !== wellKnown()) return main === undefined ? [] : [main, ...others];
    return [{ ...main, address: WELL_KNOWN_ADDRESS }, ...others];
  };
  /** All contracts, in order of rank. */
  const all = once(() => world.coins.flatMap(contractsOf));
  const byAddress = once(() => new Map(all().map((one) => [`${one.platform.id} ${one.address}`, one])));
  return {
    of: (coin, now) =>
      contractsOf(coin)
        .filter(({ platform }) => isKnown(platform, now))
        .map(({ address, platform }) => ({ contract: address, platform: platform.id, type: typeOf(platform) })),
    platforms: (now) => platforms.filter((coin) => isKnown(coin, now)),
    on: (platformId, now) => {
      const platform = platforms.find((coin) => coin.id === platformId);
      if (!platform || !isKnown(platform, now)) return null;
      return all()
        .filter((one) => one.platform === platform && isKnown(one.coin, now))
        .map(({ address, coin }) => ({ address, type: typeOf(platform), id: coin.id, active: now < coin.end }));
    },
    coinAt: (platformId, address, now) => {
      const found = byAddress().get(`${platformId} ${address.toLowerCase()}`);
      return found && isKnown(found.coin, now) && isKnown(found.platform, now) ? found.coin : null;
    },
  };
}

/** Most tokens live on the first platform, some on two. */
function chosen(coin: MadeUpCoin, platforms: readonly MadeUpCoin[]): Contract[] {
  if (coin.type !== 'token' || platforms.length === 0) return [];
  const first = unit(mix(coin.key, 501)) < 0.6 ? 0 : below(platforms.length, mix(coin.key, 502));
  const second = (first + 1) % platforms.length;
  const both = second !== first && unit(mix(coin.key, 503)) < 0.2;
  return (both ? [first, second] : [first]).map((at) => ({
    coin,
    platform: platforms[at]!,
    address: addressOf(coin, at),
  }));
}

/** The address of a token on ether that lives as long as the market, so that examples can rely on it. */
const WELL_KNOWN_ADDRESS = '0xd26114cd6ee289accf82350c8d8487fedb8a0c07';

function isFirstOnEther(coin: MadeUpCoin, platforms: readonly MadeUpCoin[]): boolean {
  return chosen(coin, platforms)[0]?.platform.index === 1;
}

/** Twenty bytes. The first four are unique to the coin, because `mix` gives different numbers for different keys. */
function addressOf(coin: MadeUpCoin, platform: number): string {
  const words = [0, 1, 2, 3, 4].map((i) => (mix(coin.key, 510 + 8 * platform + i) >>> 0).toString(16).padStart(8, '0'));
  return `0x${words.join('')}`;
}

function typeOf(platform: MadeUpCoin): string {
  return platform.index === 1 ? 'ERC20' : `${platform.symbol}20`;
}
