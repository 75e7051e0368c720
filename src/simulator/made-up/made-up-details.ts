/** The details of a made-up coin, with the keys and their order as in recorded responses (upstream-api.md, 1.9), and its events. */
import type { Instant } from '../../clock.ts';
import type { CoinDetails, CoinEvent } from '../../contract/record/catalogue.ts';
import type { CoinSummary } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import { DAY } from '../../core/interval.ts';
import { below, mix } from '../hash.ts';
import type { MadeUpCoin } from './made-up-world.ts';

const STATUSES = ['Working product', 'Alpha version', 'Beta version', 'On-going development'];
const PROOFS = ['Proof of Work', 'Proof of Stake', 'Delegated Proof of Stake'];
const STRUCTURES = ['Decentralized', 'Semi-centralized', 'Centralized'];
const HASHES = ['SHA256', 'Ethash', 'Scrypt'];

type CatalogueFields = Required<Pick<CoinDetails, 'tags' | 'team' | 'contracts'>> & {
  /** The platform of this token; null when the coin is not a token. */
  readonly platform: MadeUpCoin | null;
};

export function madeUpDetails(
  coin: MadeUpCoin,
  summary: CoinSummary,
  around: CatalogueFields,
  now: Instant,
): CoinDetails {
  const { platform } = around;
  const one = <T>(salt: number, of: readonly T[]) => of[below(of.length, mix(coin.key, salt))]!;
  const links = linksOf(coin);
  const lastData = Math.min(now, coin.end);
  return {
    id: coin.id,
    name: coin.name,
    symbol: coin.symbol,
    ...(platform && { parent: { id: platform.id, name: platform.name, symbol: platform.symbol } }),
    rank: summary.rank,
    is_new: summary.is_new,
    is_active: summary.is_active,
    type: coin.type,
    logo: `https://logos.example/${coin.id}.png`,
    tags: around.tags,
    team: around.team,
    description: `${coin.name} is a ${coin.type} of a market that does not exist.`,
    message: '',
    open_source: one(701, [true, true, false]),
    started_at: formatTime(Math.floor(coin.start / DAY) * DAY - 8 * DAY),
    development_status: one(702, [...STATUSES, null]),
    hardware_wallet: one(703, [true, false]),
    proof_type: coin.type === 'coin' ? one(704, PROOFS) : null,
    org_structure: one(705, STRUCTURES),
    hash_algorithm: coin.type === 'coin' ? one(706, HASHES) : null,
    ...(platform && contractFields(around.contracts)),
    links,
    links_extended: Object.entries(links).flatMap(([type, urls]) =>
      urls.map((url) => ({ url, type, ...statsOf(coin, type) })),
    ),
    whitepaper: { link: `https://${coin.id}.example/paper.pdf`, thumbnail: null },
    first_data_at: formatTime(coin.start),
    last_data_at: formatTime(Math.floor(lastData / 60_000) * 60_000),
  };
}

function contractFields(contracts: CatalogueFields['contracts']): Partial<CoinDetails> {
  const main = contracts?.[0];
  return main ? { contract: main.contract, platform: main.platform, contracts } : {};
}

function linksOf(coin: MadeUpCoin): Record<string, string[]> {
  const site = `https://${coin.id}.example`;
  const all: [string, string[]][] = [
    ['explorer', [`${site}/explorer`, `https://blocks.example/${coin.id}`]],
    ['reddit', [`https://forum.example/${coin.id}`]],
    ['source_code', [`https://code.example/${coin.id}`]],
    ['website', [`${site}/`]],
    ['youtube', [`https://films.example/${coin.id}`]],
  ];
  return Object.fromEntries(all.filter(([kind], i) => kind === 'website' || below(3, mix(coin.key, 720 + i)) > 0));
}

function statsOf(coin: MadeUpCoin, type: string): { stats?: Record<string, number> } {
  if (type === 'reddit') return { stats: { subscribers: below(1_000_000, mix(coin.key, 731)) } };
  if (type !== 'source_code') return {};
  return { stats: { contributors: below(800, mix(coin.key, 732)), stars: below(50_000, mix(coin.key, 733)) } };
}

const QUARTER = 91 * DAY;
const AHEAD = 30 * DAY;
const EVENTS = [
  'Mainnet Release',
  'Roadmap Update',
  'Listing',
  'Hard Fork',
  'Partnership',
  'Meetup',
  'Conference',
] as const;
const CONFERENCE = EVENTS.length - 1;

/** The events announced by `now`, the latest first. About every second quarter of the coin's life has one event, announced a month before. */
export function madeUpEvents(coin: MadeUpCoin, now: Instant): CoinEvent[] {
  const born = Math.floor(coin.start / DAY) * DAY;
  const out: CoinEvent[] = [];
  const until = Math.min(now + AHEAD, coin.end);
  for (let quarter = 0; born + quarter * QUARTER < until; quarter++) {
    const key = mix(mix(coin.key, 601), quarter);
    const date = born + quarter * QUARTER + (1 + below(90, mix(key, 1))) * DAY;
    if (below(2, key) === 0 && date < until && Math.max(date - AHEAD, coin.start) < now) {
      out.push(eventAt(coin, quarter, key, date));
    }
  }
  return out.reverse();
}

function eventAt(coin: MadeUpCoin, quarter: number, key: number, date: Instant): CoinEvent {
  const kind = below(EVENTS.length, mix(key, 2));
  const name = `${coin.name}: ${EVENTS[kind]}`;
  const isConference = kind === CONFERENCE;
  const slug = name.toLowerCase().replace(/[^a-z]+/g, '-');
  return {
    id: `${coin.index * 1_000 + quarter}-${slug}`,
    date: formatTime(date),
    date_to: isConference ? formatTime(date + 2 * DAY) : null,
    name,
    description: `${EVENTS[kind]} of ${coin.name}.`,
    is_conference: isConference,
    link: below(4, mix(key, 3)) === 0 ? null : `https://${coin.id}.example/events/${quarter}`,
    proof_image_link: null,
  };
}
