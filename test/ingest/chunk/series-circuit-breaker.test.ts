/** When a series is given up, and when another coin is requested before that. The requests are invented. */
import { expect, test } from 'vitest';
import type { IngestChunkOptions } from '../../../src/ingest/chunk/ingest-chunk.ts';
import { createCircuitBreaker } from '../../../src/ingest/chunk/series-circuit-breaker.ts';
import { type Outcome, RedirectLoop, SeriesGivenUp, UpstreamError } from '../../../src/ingest/outcome.ts';
import type { ChunkJob } from '../../../src/ingest/queue/chunk-job.ts';
import type { OtherAnswer } from '../../../src/ingest/request/request-other-coin.ts';
import { createManualClock } from '../../quota/manual-clock.ts';

const NOW = Date.UTC(2026, 10, 18, 12);
const STORED: Outcome = { kind: 'stored', requests: 1, stored: 1, revised: 0, quarantined: 0 };
const ANSWERED: OtherAnswer = { kind: 'answered', requests: 1 };
const UNANSWERED: OtherAnswer = { kind: 'unanswered', requests: 1 };

/** Six failures and the waits after the last four take this many turns: the next turn requests another coin. */
const SIX = 6 + 4;

const chunk = (seriesId: number, askedSince = NOW): ChunkJob => ({
  ...{ kind: 'backfill', backfillId: 7, seriesId, coinId: `coin-${seriesId}`, quote: 'usd', interval: '24h' },
  ...{ from: NOW - 86_400_000, to: NOW, askedSince },
});

/** `log` has each request: the number of a series, or `other`. Series 1 always fails while `broken` is true. */
function open(answerAboutOther: () => OtherAnswer | Promise<OtherAnswer> = () => ANSWERED) {
  const clock = createManualClock(NOW);
  const log: (number | 'other')[] = [];
  const about: unknown[] = [];
  const world = { broken: true, error: (): Error => new UpstreamError('500') };
  const circuitBreaker = createCircuitBreaker({
    clock,
    requestOtherCoin: async (subject) => {
      log.push('other');
      about.push(subject);
      return answerAboutOther();
    },
  });
  const ingestChunk = circuitBreaker(async ({ seriesId }) => {
    log.push(seriesId);
    if (seriesId === 1 && world.broken) throw world.error();
    return STORED;
  });
  /** One turn of a chunk: its outcome, or its error. */
  const turn = (job: ChunkJob, options?: IngestChunkOptions) =>
    ingestChunk(job, options).catch((error: unknown): Outcome | Error => error as Error);
  /** Turns of a chunk, each when it is due, until the chunk is given up or answered. */
  const turns = async (job: ChunkJob, most: number) => {
    for (let i = 0; i < most; i++) {
      const end = await turn(job);
      if (end instanceof SeriesGivenUp || (!(end instanceof Error) && end.kind === 'stored')) return end;
      clock.set(end instanceof Error || !('until' in end) ? clock.now() : Math.max(clock.now(), end.until));
    }
    return null;
  };
  return { clock, log, about, world, circuitBreaker, turn, turns };
}

test('where nothing else is requested, another coin is requested before the last two of eight failures: then the series is given up', async () => {
  const { log, about, turns, turn } = open();
  expect(await turns(chunk(1), 100)).toBeInstanceOf(SeriesGivenUp);
  expect(log).toEqual([1, 1, 1, 1, 1, 1, 'other', 1, 'other', 1]);
  expect(about[0]).toMatchObject({
    coinId: 'coin-1',
    interval: '24h',
    backfillId: 7,
    spender: { class: 'backfill', name: 'backfill 7' },
  });
  // Its other chunks cost no requests.
  expect(await turn(chunk(1))).toBeInstanceOf(SeriesGivenUp);
  expect(log).toHaveLength(10);
});

test('where another series was answered since the last failure, no other coin is requested', async () => {
  const { log, turn, clock } = open();
  for (let failures = 0; failures < 8; failures++) {
    expect(await turn(chunk(2))).toBe(STORED);
    expect(await turn(chunk(1))).toBeInstanceOf(UpstreamError);
    clock.advance(60_000);
  }
  expect(await turn(chunk(1))).toBeInstanceOf(SeriesGivenUp);
  expect(log).not.toContain('other');
});

test('another coin is requested only where no other series was answered: an answer in time spares the request', async () => {
  const { log, turns, turn, clock } = open();
  await turns(chunk(1), SIX);
  expect(log).toEqual([1, 1, 1, 1, 1, 1]);
  clock.advance(60_000);
  await turn(chunk(2));
  await turn(chunk(1));
  expect(log.slice(6)).toEqual([2, 1]);
  expect(await turns(chunk(1), 100)).toBeInstanceOf(SeriesGivenUp);
  expect(log.slice(8)).toEqual(['other', 1]);
});

test('in an outage the other coin is not answered either: the chunk is not requested, and continues after the outage', async () => {
  const UNTIL = 20;
  const { log, turns, world } = open(() =>
    log.filter((one) => one === 'other').length > UNTIL ? ANSWERED : UNANSWERED,
  );
  expect(await turns(chunk(1), SIX + 2 * UNTIL)).toBeNull();
  world.broken = false;
  expect(await turns(chunk(1), 100)).toBe(STORED);
  expect(log).toEqual([1, 1, 1, 1, 1, 1, ...Array(UNTIL + 1).fill('other'), 1]);
});

test('requests for the other coin in an outage are as far apart as those for the series, also where the ledger does not hold them', async () => {
  const { log, turns, turn, clock } = open(() => UNANSWERED);
  await turns(chunk(1), SIX);
  const askedAt = clock.now();
  expect(log).toHaveLength(6);
  expect(await turn(chunk(1))).toMatchObject({ kind: 'snoozed', reason: 'unavailable' });
  expect(await turn(chunk(1))).toEqual({ kind: 'deferred', until: askedAt + 16_000, requests: 0, reason: 'failing' });
  expect(log).toHaveLength(7);
});

test('when the quota holds the request for the other coin, the chunk waits as long, and that request is sent then', async () => {
  const held: OtherAnswer = { kind: 'held', until: NOW + 86_400_000, reason: 'month' };
  const { turns, turn, clock, log } = open(() => (clock.now() < held.until ? held : ANSWERED));
  await turns(chunk(1), SIX);
  expect(await turn(chunk(1))).toEqual({ kind: 'snoozed', until: held.until, reason: 'month' });
  clock.set(held.until);
  expect(await turns(chunk(1), 100)).toBeInstanceOf(SeriesGivenUp);
  expect(log.filter((one) => one === 1)).toHaveLength(8);
});

test('without another coin no series is given up: its chunks use all their attempts', async () => {
  const { turns, log } = open(() => ({ kind: 'no other' }));
  expect(await turns(chunk(1), 60)).toBeNull();
  expect(log.filter((one) => one === 1).length).toBeGreaterThan(8);
});

test('one request at a time decides for all chunks of a series', async () => {
  let answer: (told: OtherAnswer) => void = () => undefined;
  const { turns, turn, log } = open(() => new Promise((resolve) => (answer = resolve)));
  await turns(chunk(1), SIX);
  const first = turn(chunk(1));
  expect(await turn(chunk(1))).toMatchObject({ kind: 'deferred', requests: 0, reason: 'failing' });
  answer(ANSWERED);
  // The request shows the run that the upstream answers.
  expect(await first).toMatchObject({ kind: 'deferred', requests: 1, reason: 'failing' });
  expect(log.filter((one) => one === 'other')).toHaveLength(1);
});

test('a broken series stays known for the next run, which tries it once', async () => {
  const { turns, log, clock, circuitBreaker, world } = open();
  await turns(chunk(1), 100);
  log.length = 0;
  clock.advance(1);
  expect(await turns(chunk(1, clock.now()), 100)).toBeInstanceOf(SeriesGivenUp);
  expect(log).toEqual(['other', 1]);
  // It also holds for all that share the breaker: a run and the refreshes of a service.
  await expect(circuitBreaker(async () => STORED)(chunk(1))).rejects.toThrow(/9 requests for this series failed/);
  world.broken = false;
  clock.advance(1);
  expect(await turns(chunk(1, clock.now()), 100)).toBe(STORED);
});

test('two workers with chunks of a failing series try one of them: before it is given up, and in the next run', async () => {
  const { turns, log, clock, turn } = open();
  const TRIED = [expect.any(UpstreamError), expect.objectContaining({ kind: 'deferred', requests: 0 })];
  const both = (askedSince?: number) => {
    const job = chunk(1, askedSince);
    return Promise.all([turn(job), turn({ ...job, from: job.from - 86_400_000, to: job.from })]);
  };
  await turns(chunk(1), 3 + 1);
  expect(log).toEqual([1, 1, 1]);
  expect(await both()).toEqual(TRIED);
  expect(await turns(chunk(1), 100)).toBeInstanceOf(SeriesGivenUp);
  expect(log.filter((one) => one === 1)).toHaveLength(8);
  clock.advance(60_000);
  await turn(chunk(2));
  const since = clock.now();
  expect(await both(since)).toEqual(TRIED);
  expect(log.filter((one) => one === 1)).toHaveLength(9);
  clock.advance(60_000);
  expect(await both(since)).toEqual([expect.any(SeriesGivenUp), expect.any(SeriesGivenUp)]);
});

test('a later run in an outage does not give a series up before it has tried it', async () => {
  let isDown = false;
  const { turns, log, clock, world } = open(() => (isDown ? UNANSWERED : ANSWERED));
  await turns(chunk(1), 100);
  log.length = 0;
  clock.advance(1);
  const next = chunk(1, clock.now());
  isDown = true;
  expect(await turns(next, 20)).toBeNull();
  expect(log).not.toContain(1);
  [isDown, world.broken] = [false, false];
  expect(await turns(next, 20)).toBe(STORED);
});

test('two redirect loops in a row are enough, and no other coin is requested', async () => {
  const { turns, turn, log, world, clock } = open();
  world.error = () => new RedirectLoop('moved');
  expect(await turns(chunk(1), 100)).toBeInstanceOf(SeriesGivenUp);
  expect(log).toEqual([1, 1]);
  // However many workers there are, the next run tries the series once.
  clock.advance(1);
  const next = chunk(1, clock.now());
  await Promise.all([turn(next), turn({ ...next, from: next.from - 86_400_000, to: next.from })]);
  expect(log).toEqual([1, 1, 1]);
});

test('a run that ends sends no request for another coin', async () => {
  const { turns, turn, log, world } = open();
  await turns(chunk(1), SIX);
  world.broken = false;
  const stop = new AbortController();
  stop.abort();
  await turn(chunk(1), { signal: stop.signal });
  expect(log).not.toContain('other');
});
