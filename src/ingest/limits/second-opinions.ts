/**
 * The claims about refusals under one plan that need a second opinion. This process holds them in memory, so that a look-up costs no SQL statement.
 */
import type { Clock, Instant } from '../../clock.ts';
import { DAY } from '../../core/interval.ts';
import type { ClaimAnswer, ClaimName } from '../../core/second-opinion.ts';
import type { Sql } from '../../store/connection/connect.ts';
import {
  type Claim,
  type ClaimId,
  dropClaim,
  type Opinion,
  readClaims,
  recordAnswer,
  type Statement,
} from '../../store/work/second-opinion.ts';

/** The kinds of claims about refusals of a plan. Each rule forgets its claims after a day at most. */
const CLAIMS: readonly ClaimName[] = [
  'history limit',
  'series without payment',
  'chunk without payment',
  'refused chunk',
  'day is late',
];

/** When a request was sent, and how old its answer was when it came. */
export type AnswerTime = Pick<ClaimAnswer, 'sentAt' | 'ageMs'>;

type ReceivedAnswer = Omit<ClaimAnswer, 'says'>;

/** The answer of an exchange, received now. */
export function toReceivedAnswer(now: Instant, { sentAt, ageMs }: AnswerTime): ReceivedAnswer {
  return { sentAt, ageMs, receivedAt: now };
}

export type SecondOpinions = {
  find(claim: ClaimName, subject: string): Claim | null;
  list(claim: ClaimName): readonly Claim[];
  /** Counts one more answer and stores the result. `state` is called with the claim as the database holds it. */
  record(
    claim: ClaimName,
    subject: string,
    received: ReceivedAnswer,
    state: (before: Claim | null) => Statement,
  ): Promise<Opinion>;
  /** Drops the claim, unless it is newer than this answer, which contradicts it. Sends no SQL statement while this process knows of no such claim. */
  contradict(claim: ClaimName, subject: string, received: ReceivedAnswer): Promise<void>;
  /** Drops the claim because the upstream has answered what it is about. Sends no SQL statement while this process knows of no such claim. */
  drop(claim: ClaimName, subject: string): Promise<void>;
  /** Reads the claims that other processes have changed. */
  reload(): Promise<void>;
};

export async function openSecondOpinions(sql: Sql, clock: Clock, plan: string): Promise<SecondOpinions> {
  const prefix = `${plan} `;
  let known = new Map<string, ClaimId & Claim>();
  /** Counts the writes of this process: a read that was under way during a write is older than the write. */
  let writes = 0;
  const idOf = (claim: ClaimName, subject: string) => `${claim} ${prefix}${subject}`;
  const keep = (name: ClaimId, claim: Claim | null) => {
    writes++;
    const id = `${name.claim} ${name.key}`;
    if (claim === null) known.delete(id);
    else known.set(id, { ...name, ...claim });
  };

  const reload = async () => {
    const before = writes;
    const rows = await readClaims(sql, { claims: CLAIMS, prefix, since: clock.now() - DAY });
    if (writes === before) known = new Map(rows.map((row) => [`${row.claim} ${row.key}`, row]));
  };
  await reload();

  const record: SecondOpinions['record'] = async (claim, subject, received, state) => {
    const name = { claim, key: prefix + subject };
    const opinion = await sql.begin((tx) => recordAnswer(tx, name, received, state));
    keep(name, opinion.claim);
    return opinion as Opinion;
  };
  return {
    find: (claim, subject) => known.get(idOf(claim, subject)) ?? null,
    list: (claim) => [...known.values()].filter((one) => one.claim === claim),
    record,
    contradict: async (claim, subject, received) => {
      if (known.has(idOf(claim, subject))) await record(claim, subject, received, () => ({ says: 'contradicts' }));
    },
    drop: async (claim, subject) => {
      const name = known.get(idOf(claim, subject));
      if (name === undefined) return;
      await dropClaim(sql, { claim, key: name.key });
      keep(name, null);
    },
    reload,
  };
}
