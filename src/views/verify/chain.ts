/** Recomputes the links of rows that hold several steps. The links of the other rows are compared by the query that reads them. Pure. */
import { createHash } from 'node:crypto';
import type { Instant } from '../../clock.ts';
import type { Account } from './account.ts';
import type { Evidence, SeriesRow } from './read-series.ts';
import type { Step } from './steps.ts';

const POSTGRES_EPOCH_MS = Date.UTC(2000, 0, 1);
/** Flags of a Postgres range: lower bound included, upper excluded. */
const HALF_OPEN = 2;

/** The indexes of the rows whose link does not follow from the link before. `unknown`: rows whose steps cannot be summed. */
export function brokenLinks(
  { firstLink }: SeriesRow,
  evidence: readonly Evidence[],
  { steps, told }: Pick<Account, 'steps' | 'told'>,
  unknown: ReadonlySet<number>,
): number[] {
  const ofRow = new Map<number, number[]>();
  for (const [place, { row }] of steps.entries()) ofRow.set(row, [...(ofRow.get(row) ?? []), place]);
  return evidence.flatMap((row, place) => {
    if (row.isLinked !== null) return row.isLinked ? [] : [place];
    if (unknown.has(place)) return [];
    // A row of no steps at all is none that Chandler writes.
    const own = ofRow.get(place) ?? [];
    if (own.length === 0 || own.some((step) => steps[step]!.slots.length === 0)) return [place];
    const before: Buffer = Buffer.from(evidence[place - 1]?.link ?? firstLink, 'hex');
    const link = own.reduce<Buffer>((link, step) => linkOf(link, steps[step]!, told(step)), before);
    return link.toString('hex') === row.link ? [] : [place];
  });
}

/** The same as `ops.evidence_link`, for a step about one stretch and without detail. */
function linkOf(before: Buffer, { kind, knownAt, slots }: Step, sums: { candles: number; digest: bigint }): Buffer {
  const { from, to } = slots[0]!;
  const rest = Buffer.alloc(8 + 4 + 4 + 1 + 12 + 12 + 4 + 8);
  let at = rest.writeBigInt64BE(microseconds(knownAt), 0);
  at = rest.writeInt32BE(1, at);
  at = rest.writeInt32BE(25, at);
  at = rest.writeUInt8(HALF_OPEN, at);
  for (const bound of [from, to]) {
    at = rest.writeInt32BE(8, at);
    at = rest.writeBigInt64BE(microseconds(bound), at);
  }
  at = rest.writeInt32BE(sums.candles, at);
  rest.writeBigUInt64BE(sums.digest, at);
  return createHash('sha256').update(before).update(kind).update(rest).digest();
}

function microseconds(at: Instant): bigint {
  return Number.isFinite(at) ? BigInt(Math.round((at - POSTGRES_EPOCH_MS) * 1_000)) : 0n;
}
