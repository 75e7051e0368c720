/** Lies that only stored candles can reveal, told once each: anywhere, or only where P11 promises that they are found out. */
import type { Clock } from '../../src/clock.ts';
import type { FaultName } from '../../src/simulator/faults/fault-spec.ts';
import { spoilRows, type WireRow } from '../../src/simulator/faults/faulty-rows.ts';
import { otherRows } from '../../src/simulator/faults/other-answer.ts';
import { rowQuestion } from '../../src/simulator/faults/row-question.ts';
import { createToldOnce } from '../../src/simulator/faults/told-once.ts';
import { hashText, mix, unit } from '../../src/simulator/hash.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import type { FetchFunction } from '../../src/upstream/wire.ts';
import { isPromised, readBeside } from './promised.ts';

/** The lies by what reveals them. */
const BESIDE = ['other-coin', 'scaled', 'shifted-day', 'constant', 'thinned'] as const satisfies readonly FaultName[];
export const LIES_BESIDE: readonly FaultName[] = BESIDE;

export type LiarOptions = {
  readonly seed: number;
  /** The share of lies among the answers about which one may be told. */
  readonly share: number;
  readonly clock: Clock;
  readonly sql: Sql;
  /** The same market without lies. */
  readonly ask: FetchFunction;
  /** Also where nothing promises that the lie is found out. */
  readonly anywhere?: boolean;
  readonly told: (name: FaultName, lie: Told) => void;
};

export type Told = {
  readonly request: Request;
  readonly lie: readonly WireRow[];
  readonly truth: readonly WireRow[];
  /** Whether docs/proof.md says that it is found out. */
  readonly isPromised: boolean;
};

/** `simulated`, which may fail as well, with these lies. */
export function withLiesBeside(simulated: FetchFunction, options: LiarOptions): FetchFunction {
  const { seed, share, clock, sql, ask, told, anywhere = false } = options;
  const attempts = new Map<string, number>();
  const toldOnce = createToldOnce();
  return async (request) => {
    const answer = await simulated(request);
    const question = rowQuestion(request);
    if (question === null || answer.status !== 200) return answer;
    const attempt = (attempts.get(request.url) ?? 0) + 1;
    attempts.set(request.url, attempt);
    const roll = mix(hashText(seed, request.url), attempt);
    if (unit(roll) >= share) return answer;
    const rows = await rowsOf(answer);
    if (rows === null) return answer;
    const beside = await readBeside(sql, question);
    if (beside === null) return answer;
    const first = Math.floor(unit(mix(roll, 1)) * BESIDE.length);
    for (const name of [...BESIDE.slice(first), ...BESIDE.slice(0, first)]) {
      const lie =
        spoilRows(name, rows, { now: clock.now(), roll, url: request.url }) ??
        (await otherRows(name, rows, { request, roll, ask }));
      if (lie === null || lie.length === 0) continue;
      const promised = isPromised({ name, lie, truth: rows, interval: question.interval, beside });
      if (!promised && !anywhere) continue;
      if (!toldOnce.mayTell(request)) return answer;
      told(name, { request, lie, truth: rows, isPromised: promised });
      const headers = new Headers(answer.headers);
      headers.delete('content-length');
      return Response.json(lie, { headers });
    }
    return answer;
  };
}

async function rowsOf(answer: Response): Promise<WireRow[] | null> {
  const text = await answer.clone().text();
  try {
    const body = JSON.parse(text) as unknown;
    return Array.isArray(body) && body.length > 0 ? (body as WireRow[]) : null;
  } catch {
    return null;
  }
}
