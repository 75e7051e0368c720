/** What operators can do on the dashboard. A command does the same, and the audit log names it. */
import type { App } from '../../app.ts';
import { readBudget, readPlanning } from '../../budget.ts';
import { formatCounted, formatDay, formatInstant, formatSeries } from '../../core/format.ts';
import { ceilToGrid, DAY, floorToGrid } from '../../core/interval.ts';
import { type Action, ActionFailed, type Arguments } from '../../dashboard/action.ts';
import { readInstant, readInterval, readQuote } from '../../dashboard/parts/address.ts';
import { BadAddress } from '../../dashboard/screen.ts';
import { planBackfill } from '../../ingest/backfill/plan.ts';
import { type BackfillChange, changeBackfill } from '../../store/backfill/backfill-queue.ts';
import { unknownCoins } from '../../store/snapshot/coin.ts';
import { presentIdsOf } from '../../store/upkeep/rename.ts';
import { type BackfillRow, readBackfills } from '../../views/backfills/backfills.ts';
import { describeCancelled, recountAfterChange, settleCancelled } from '../actions/after-change.ts';
import {
  commandOf,
  explainNothingToRequest,
  forecastOfFill,
  readWaiting,
  recordFill,
  sentencesOf,
} from './fill-sentences.ts';
import { fillGaps } from './gap-actions.ts';
import { keyActions } from './key-actions.ts';
import { trackAction, untrackAction } from './track-actions.ts';

export function createActions(app: App): Readonly<Record<string, Action>> {
  return {
    pause: (given) => change(app, given, 'pause'),
    resume: (given) => change(app, given, 'resume'),
    cancel: (given) => change(app, given, 'cancel'),
    backfill: (given) => backfill(app, given),
    'fill-gaps': () => fillGaps(app),
    track: (given) => trackAction(app, given),
    untrack: (given) => untrackAction(app, given),
    ...keyActions(app),
  };
}

const CHANGES: Readonly<
  Record<BackfillChange, { readonly verb: string; readonly means: string; readonly done: string }>
> = {
  pause: {
    verb: 'Pause',
    means: 'It sends no more requests until you resume it. Stored data stays.',
    done: 'paused',
  },
  resume: { verb: 'Resume', means: 'It requests what is still missing.', done: 'queued' },
  cancel: {
    verb: 'Cancel',
    means:
      'Stored data stays. Its missing slots are no longer wanted, unless a tracking rule or another backfill wants them.',
    done: 'cancelled',
  },
};

async function change(app: App, given: Arguments, what: BackfillChange): ReturnType<Action> {
  const { sql } = app.database;
  const row = await theBackfill(app, given);
  const { id } = row;
  const { verb, means, done } = CHANGES[what];
  if (what === 'cancel' && row.state === 'cancelled') throw new ActionFailed(`backfill ${id} is cancelled already`);
  return {
    question: `${verb} backfill ${id}?`,
    verb: `${verb} backfill ${id}`,
    sentences: [`${describe(row)}.`, means],
    requests: what === 'resume' ? (row.leftRequests ?? 0) : 0,
    command: ['chandler', 'backfills', what, String(id)],
    next: '/ui/backfills',
    act: async () => {
      if ((await changeBackfill(sql, id, what, app.clock.now())) === null) {
        const [now] = await readBackfills(sql, { all: true, id });
        throw new ActionFailed(
          `backfill ${id} is ${now?.state ?? 'gone'} and cannot be ${verb.toLowerCase()}${verb.endsWith('e') ? 'd' : 'led'}`,
        );
      }
      if (what !== 'cancel') await recountAfterChange(app, id);
      const after = what === 'cancel' ? describeCancelled(await settleCancelled(app, id)) : [];
      return [`Backfill ${id} is ${done}.`, ...after];
    },
  };
}

async function theBackfill({ database: { sql } }: App, given: Arguments): Promise<BackfillRow> {
  const text = given.get('backfill') ?? '';
  if (!/^\d{1,9}$/.test(text))
    throw new BadAddress(`backfill must be the number of a backfill, like 12, got ${JSON.stringify(text)}.`);
  const [row] = await readBackfills(sql, { all: true, id: Number(text) });
  if (row === undefined) throw new BadAddress(`There is no backfill ${text}. The screen Backfills lists all.`);
  if (!row.isDetached)
    throw new ActionFailed(`backfill ${text} belongs to a command (${row.owner}), not to the service; stop it there`);
  return row;
}

function describe(row: BackfillRow): string {
  const { from, to, coins } = row;
  const span = from === null || to === null ? '' : `, ${formatDay(from)} to ${formatDay(to)}`;
  return `It fetches ${formatSeries(row)}${coins === null ? '' : ` of ${formatCounted(coins, 'coin')}`}${span}`;
}

/** The highest number of coins that an address can name. */
const MOST_COINS = 500;

/** Fills what is missing. Parameters: `coin` (several times), `interval`, `quote`, `from`, `to`. */
async function backfill(app: App, given: Arguments): ReturnType<Action> {
  const { sql } = app.database;
  const now = app.clock.now();
  const target = readTarget(given, now);
  const { coinIds, interval, span } = target;
  const [renamed] = await presentIdsOf(sql, coinIds);
  if (renamed !== undefined) throw new BadAddress(`The coin ${renamed[0]} has the id ${renamed[1]} now.`);
  const [unknown] = await unknownCoins(sql, coinIds);
  if (unknown !== undefined) throw new BadAddress(`There is no coin ${JSON.stringify(unknown)}.`);
  const budget = await readBudget(app);
  const { plan, historyLimits } = await readPlanning(app, budget.plan);
  const historyLimit = historyLimits.of(interval);
  const place = { id: null, priority: 0 };
  const planned = await planBackfill({ sql, target, now, requestedSince: now, plan, historyLimit, place });
  const { requests, slots } = planned.cost;
  const waiting = await readWaiting(sql, target, now);
  if (requests === 0 && planned.othersSlots === 0)
    throw new ActionFailed(explainNothingToRequest(planned, waiting, now));
  return {
    question:
      slots === 0 && planned.probe
        ? `Check whether the upstream gives more of ${formatCounted(coinIds.length, 'coin')}?`
        : `Fill ${formatCounted(slots, 'slot')} of ${formatCounted(coinIds.length, 'coin')}?`,
    verb: `Send ${formatCounted(requests, 'request')}`,
    sentences: [
      `${formatSeries(target)} of ${coinIds.slice(0, 5).join(', ')}${coinIds.length > 5 ? ` and ${coinIds.length - 5} more` : ''}, ${formatInstant(span.from)} to ${formatInstant(span.to)}.`,
      ...sentencesOf(planned, waiting, now),
    ],
    requests,
    done: await forecastOfFill(app, budget, requests),
    command: commandOf(target),
    next: '/ui/backfills',
    act: async (actor) => {
      const recorded = await recordFill(app, { target, plan, historyLimit, historyLimits }, actor);
      return [`Backfill ${recorded.id} is recorded: ${formatCounted(recorded.requests, 'request')}.`];
    },
  };
}

function readTarget(given: Arguments, now: number) {
  const coinIds = [...new Set(given.getAll('coin'))];
  const odd = coinIds.find((id) => id.length > 200 || /\p{Cc}/u.test(id));
  if (odd !== undefined) throw new BadAddress('coin must be the id of a coin, like btc-bitcoin.');
  if (coinIds.length === 0) throw new BadAddress('coin is missing: give at least one coin, like coin=btc-bitcoin.');
  if (coinIds.length > MOST_COINS)
    throw new BadAddress(`At most ${MOST_COINS} coins at once, got ${coinIds.length}. Use chandler backfill for more.`);
  const [interval, quote] = [readInterval(given) ?? '24h', readQuote(given) ?? 'usd'];
  const from = floorToGrid(readTime(given, 'from', now - 30 * DAY), interval);
  const to = ceilToGrid(Math.min(now, readTime(given, 'to', now)), interval);
  if (from >= to) throw new BadAddress('from must be before to, and before now.');
  return { coinIds, interval, quote, span: { from, to } };
}

/** Earlier than the first candle of any coin. */
const EARLIEST = Date.UTC(2009, 0, 1);

function readTime(given: Arguments, name: string, otherwise: number): number {
  return Math.max(EARLIEST, readInstant(given, name) ?? otherwise);
}
