/** Tags of the made-up market, and its token sales (`icos`). The coin's key alone decides which tags a coin has. */
import type { Instant } from '../../clock.ts';
import type { Tag } from '../../contract/record/catalogue.ts';
import { DAY } from '../../core/interval.ts';
import { mix, unit } from '../hash.ts';
import { type MadeUpCoin, type MadeUpWorld, madeUpName } from './made-up-world.ts';

/** Name, type, and the share of coins with the tag. At most 31 tags: one number stores a coin's tags. */
const TAGS = (
  [
    ['Cryptocurrency', 'functional', 0.5],
    ['Smart Contracts', 'technical', 0.3],
    ['Payments', 'functional', 0.25],
    ['Proof Of Stake', 'technical', 0.25],
    ['Proof Of Work', 'technical', 0.2],
    ['Decentralized Applications', 'technical', 0.15],
    ['Decentralized Finance', 'functional', 0.15],
    ['Premine', 'technical', 0.12],
    ['Gaming', 'functional', 0.1],
    ['Governance', 'functional', 0.1],
    ['Collectibles', 'functional', 0.08],
    ['Privacy', 'functional', 0.06],
    ['Identity', 'functional', 0.05],
    ['Lending', 'functional', 0.05],
    ['Logistics', 'functional', 0.04],
    ['Storage', 'functional', 0.03],
    ['Wrapped', 'technical', 0.03],
    ['Education', 'functional', 0.02],
    ['Energy', 'functional', 0.02],
    ['Zero Knowledge Proofs', 'technical', 0.02],
  ] as const
).map(([name, type, share], bit) => ({ id: name.toLowerCase().replaceAll(' ', '-'), name, type, share, bit }));

export type MadeUpIco = {
  readonly id: string;
  readonly name: string;
  readonly symbol: string;
  readonly key: number;
  readonly start: Instant;
};

/** A coin's tags without their counters. */
export function tagsOf(key: number): readonly { readonly id: string; readonly name: string }[] {
  const mask = maskOf(key);
  return TAGS.filter(({ bit }) => (mask >> bit) & 1).map(({ id, name }) => ({ id, name }));
}

/** Every tag with the coins and token sales that have it; the counters are the lengths of the lists. */
export function madeUpTags(coins: readonly MadeUpCoin[], icos: readonly MadeUpIco[]): Tag[] {
  const coinMasks = coins.map(({ key }) => maskOf(key));
  const icoMasks = icos.map(({ key }) => maskOf(key));
  return TAGS.map(({ id, name, type, bit }) => {
    const coinIds = coins.filter((_, i) => (coinMasks[i]! >> bit) & 1).map((coin) => coin.id);
    const icoIds = icos.filter((_, i) => (icoMasks[i]! >> bit) & 1).map((ico) => ico.id);
    return {
      id,
      name,
      coin_counter: coinIds.length,
      ico_counter: icoIds.length,
      description: `Projects in the field of ${name.toLowerCase()}.`,
      type,
      coins: coinIds,
      icos: icoIds,
    };
  });
}

/** Beyond the highest index of a coin, so that no two names are equal. */
const FIRST_ICO_NAME = 65_000;

/** One token sale for every ten coins, at most 500. */
export function madeUpIcos(world: MadeUpWorld): MadeUpIco[] {
  return Array.from({ length: Math.min(500, Math.ceil(world.coins.length / 10)) }, (_, i) => {
    const key = mix(mix(world.seed, 0x69636f), i);
    const name = `${madeUpName(world.seed, FIRST_ICO_NAME + i).split(' ')[0]!} Sale`;
    const symbol = name.slice(0, 4).toUpperCase();
    const start = Date.UTC(2017, 0, 1) + Math.floor(unit(key) * 900) * DAY;
    return { id: `${symbol}-${name.replace(' ', '-')}`.toLowerCase(), name, symbol, key, start };
  });
}

function maskOf(key: number): number {
  let mask = 0;
  for (const { bit, share } of TAGS) if (unit(mix(mix(key, 401), bit)) < share) mask |= 1 << bit;
  return mask;
}
