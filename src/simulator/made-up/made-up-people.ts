/**
 * The people of the made-up market. Eight neighbouring coins share sixteen people, so the team of a coin and the positions of a person are found in a
 * few steps. A name encodes the person's number.
 */
import type { Instant } from '../../clock.ts';
import type { CoinDetails, Person } from '../../contract/record/catalogue.ts';
import { below, mix } from '../hash.ts';
import { type MadeUpCoin, type MadeUpWorld, writeSyllables } from './made-up-world.ts';

const COINS_PER_POOL = 8;
const PEOPLE_PER_POOL = 16;
const FIRST_NAMES = 'Ada Bela Carl Dora Emil Fay Gus Hedy Ivo Jana Kurt Lena Milo Nora Otto Pia'.split(' ');
const FIRST_POSITION = 'Founder';
const POSITIONS = ['Developer', 'Advisor', 'Researcher', 'Marketing', 'Operations', 'Author', 'Designer'];

/** A place in a team. `number` is the person's number. */
type Seat = { readonly number: number; readonly position: string };

export function madeUpTeam(world: MadeUpWorld, coin: MadeUpCoin): NonNullable<CoinDetails['team']> {
  return seatsOf(coin).map(({ number, position }) => ({ ...nameOf(world, number), position }));
}

export type MadeUpName = { readonly number: number; readonly id: string; readonly name: string };

/** Everyone that the market may know at any time. */
export function allPeople(world: MadeUpWorld): readonly MadeUpName[] {
  const count = Math.ceil(world.coins.length / COINS_PER_POOL) * PEOPLE_PER_POOL;
  return Array.from({ length: count }, (_, number) => ({ number, ...nameOf(world, number) }));
}

/** Null when no coin that is known at `now` has this person in its team. */
export function madeUpPerson(world: MadeUpWorld, { number, id, name }: MadeUpName, now: Instant): Person | null {
  const positions = positionsOf(world, number, now);
  if (positions.length === 0) return null;
  const key = mix(mix(world.seed, 0x70656f70), number);
  const link = (salt: number, url: string) =>
    below(3, mix(key, salt)) === 0 ? [] : [{ url, followers: below(20_000, mix(key, salt + 50)) }];
  return {
    id,
    name,
    description: `${name} works on ${positions.map(({ coin_name }) => coin_name).join(', ')}.`,
    teams_count: positions.length,
    links: {
      github: link(1, `https://code.example/${id}`),
      linkedin: link(2, `https://careers.example/${id}`),
      medium: link(3, `https://essays.example/@${id}`),
      twitter: link(4, `https://short.example/${id}`),
      additional: [],
    },
    positions,
  };
}

export function positionsOf(world: MadeUpWorld, number: number, now: Instant): NonNullable<Person['positions']> {
  const pool = Math.floor(number / PEOPLE_PER_POOL);
  return world.coins.slice(pool * COINS_PER_POOL, (pool + 1) * COINS_PER_POOL).flatMap((coin) => {
    const seat = coin.start < now ? seatsOf(coin).find((one) => one.number === number) : undefined;
    return seat ? [{ coin_id: coin.id, coin_name: coin.name, position: seat.position }] : [];
  });
}

function seatsOf(coin: MadeUpCoin): Seat[] {
  const pool = Math.floor(coin.index / COINS_PER_POOL);
  const size = below(7, mix(coin.key, 301)) + (coin.index < 3 ? 3 : 0);
  const first = below(PEOPLE_PER_POOL, mix(coin.key, 302));
  // An odd number, so that no seat is taken twice.
  const step = 2 * below(PEOPLE_PER_POOL / 2, mix(coin.key, 303)) + 1;
  return Array.from({ length: size }, (_, seat) => ({
    number: pool * PEOPLE_PER_POOL + ((first + seat * step) % PEOPLE_PER_POOL),
    position: seat === 0 ? FIRST_POSITION : POSITIONS[below(POSITIONS.length, mix(coin.key, 310 + seat))]!,
  }));
}

/** The founder of ether, or of the only coin. The name is well known, so that examples can rely on it. */
const WELL_KNOWN = 'Vitalik Buterin';

function nameOf({ seed, coins }: MadeUpWorld, number: number): { id: string; name: string } {
  const name = number === seatsOf(coins[1] ?? coins[0]!)[0]!.number ? WELL_KNOWN : spelt(seed, number);
  return { id: name.toLowerCase().replace(' ', '-'), name };
}

/**
 * Twenty bits: four for the first name, sixteen for the two syllables of the last name. An odd factor scrambles them, so that neighbours do not sound
 * alike and no two names are equal.
 */
const CODES = 0xf_ffff;

function spelt(seed: number, number: number): string {
  const scramble = mix(seed, 0x77686f);
  const code = (Math.imul(number, (scramble & CODES) | 1) + (scramble >>> 12)) & CODES;
  return `${FIRST_NAMES[code >> 16]} ${writeSyllables(code & 0xffff)}`;
}
