/** The commands that correct what `chandler verify` has found. A proof changes nothing itself. */
import { shellWord, toIso } from '../../core/format.ts';
import type { Span } from '../../core/span.ts';
import type { SeriesProof } from '../../views/operations/verify.ts';
import { LAST_DATE } from '../../views/verify/findings.ts';

export function repairCommand({ seriesId }: SeriesProof, span: Span): string {
  const bounds = `, '${bound(span.from) ?? '-infinity'}', '${bound(span.to) ?? 'infinity'}'`;
  return `chandler sql "select ops.uncover(${seriesId}${isAllTime(span) ? '' : bounds})"`;
}

export function removeCommand(statement: string): string {
  return `chandler sql "${statement}"`;
}

/**
 * One command for each stretch, so that nothing between them becomes wanted. Empty when no slot of it can be requested. Whoever wrote into the
 * warehouse must not write commands for the shell of its owner.
 */
export function refetchCommands({ coinId, interval, quote, toRefetch }: SeriesProof): string[] {
  return toRefetch.map(
    ({ from, to }) =>
      `chandler backfill ${shellWord(coinId)} --interval ${shellWord(interval)} --quote ${shellWord(quote)} --start ${toIso(from)} --end ${toIso(to)}`,
  );
}

export const isAllTime = ({ from, to }: Span): boolean => !Number.isFinite(from) && !Number.isFinite(to);

export function bound(at: number, write: (at: number) => string | null = toIso): string | null {
  return Math.abs(at) <= LAST_DATE ? write(at) : null;
}
