/** The claims about refusals under one plan that need a second opinion, as this process knows them: asking costs no statement. */
import type { Clock } from '../../clock.ts';
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

/** What is refused under a plan, and needs a second opinion; each rule forgets its claims after a day at most. */
const CLAIMS: readonly ClaimName[] = [
  'history limit',
  'series without payment',
  'chunk without payment',
  'refused chunk',
];

type Heard = Omit<ClaimAnswer, 'says'>;

export type SecondOpinions = {
  find(claim: ClaimName, subject: string): Claim | null;
  list(claim: ClaimName): readonly Claim[];
  /** Stores how the claim stands after one more answer. `state` is called with the claim as all processes know it. */
  record(claim: ClaimName, subject: string, heard: Heard, state: (before: Claim | null) => Statement): Promise<Opinion>;
  /** Drops the claim, unless it is newer than this answer, which contradicts it. No statement while this process knows of no such claim. */
  contradict(claim: ClaimName, subject: string, heard: Heard): Promise<void>;
  /** Drops the claim: what it was about was answered. No statement while this process knows of no such claim. */
  drop(claim: ClaimName, subject: string): Promise<void>;
  /** Reads what other processes have learned. */
  reload(): Promise<void>;
};

export async function openSecondOpinions(sql: Sql, clock: Clock, plan: string): Promise<SecondOpinions> {
  const prefix = `${plan} `;
  const known = new Map<string, ClaimId & Claim>();
  const idOf = ({ claim, key }: ClaimId) => `${claim} ${key}`;
  const nameOf = (claim: ClaimName, subject: string): ClaimId => ({ claim, key: prefix + subject });

  const reload = async () => {
    const before = new Map(known);
    const rows = await readClaims(sql, { claims: CLAIMS, prefix, since: clock.now() - DAY });
    const read = new Map(rows.map((row) => [idOf(row), row]));
    for (const id of new Set([...before.keys(), ...read.keys()])) {
      // What was learned meanwhile is newer than what was read.
      if (known.get(id) !== before.get(id)) continue;
      const row = read.get(id);
      if (row === undefined) known.delete(id);
      else known.set(id, row);
    }
  };
  await reload();

  const find = (claim: ClaimName, subject: string) => known.get(idOf(nameOf(claim, subject))) ?? null;
  const record: SecondOpinions['record'] = async (claim, subject, heard, state) => {
    const name = nameOf(claim, subject);
    const opinion = (await sql.begin((tx) => recordAnswer(tx, name, heard, state))) as Opinion;
    if (opinion.claim === null) known.delete(idOf(name));
    else known.set(idOf(name), { ...name, ...opinion.claim });
    return opinion;
  };
  return {
    find,
    list: (claim) => [...known.values()].filter((one) => one.claim === claim),
    record,
    contradict: async (claim, subject, heard) => {
      if (find(claim, subject) !== null) await record(claim, subject, heard, () => ({ says: 'contradicts' }));
    },
    drop: async (claim, subject) => {
      if (find(claim, subject) === null) return;
      const name = nameOf(claim, subject);
      await dropClaim(sql, name);
      known.delete(idOf(name));
    },
    reload,
  };
}
