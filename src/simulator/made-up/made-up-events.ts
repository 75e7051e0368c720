/** Events of the made-up market: one in about every second quarter of a coin's life, announced a month ahead. */
import type { Instant } from '../../clock.ts';
import type { CoinEvent } from '../../contract/record/catalogue.ts';
import { formatTime } from '../../contract/time.ts';
import { DAY } from '../../core/interval.ts';
import { below, mix } from '../hash.ts';
import type { MadeUpCoin } from './made-up-coin.ts';

const QUARTER = 91 * DAY;
const AHEAD = 30 * DAY;
const KINDS = [
  'Mainnet Release',
  'Roadmap Update',
  'Listing',
  'Hard Fork',
  'Partnership',
  'Meetup',
  'Conference',
] as const;
const CONFERENCE = KINDS.length - 1;

/** What has been announced by `now`, the latest first. */
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
  const kind = below(KINDS.length, mix(key, 2));
  const name = `${coin.name}: ${KINDS[kind]}`;
  const isConference = kind === CONFERENCE;
  const slug = name.toLowerCase().replace(/[^a-z]+/g, '-');
  return {
    id: `${coin.index * 1_000 + quarter}-${slug}`,
    date: formatTime(date),
    date_to: isConference ? formatTime(date + 2 * DAY) : null,
    name,
    description: `${KINDS[kind]} of ${coin.name}.`,
    is_conference: isConference,
    link: below(4, mix(key, 3)) === 0 ? null : `https://${coin.id}.example/events/${quarter}`,
    proof_image_link: null,
  };
}
