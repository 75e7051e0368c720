/** Compares recounted files with an attestation. This needs no warehouse. */

import type { Instant } from '../../clock.ts';
import { formatCounted } from '../../core/format.ts';
import { nameOfSeries } from '../../core/interval.ts';
import { parse } from '../../views/attestation/check-file.ts';
import { type Finding, finding } from '../../views/attestation/finding.ts';
import { type AttestedSeries, nameOf, readSeries } from '../../views/attestation/series-line.ts';
import { attestedSeries } from './against-warehouse.ts';
import type { Recounted } from './recount.ts';

/**
 * `facts`: lines of a checked attestation. Each month of a series that is in both is `equal`, `changed` or `tampered`. `changed`: the attestation
 * is of another state of the evidence of the series, so only the warehouse can say why. `tampered`: it is of the same state.
 */
export async function* compareWithAttestation(
  recounted: Recounted,
  facts: AsyncIterable<string>,
): AsyncGenerator<Finding> {
  const attested = new Map<string, AttestedSeries>();
  for await (const line of facts) {
    const series = readSeries(parse(line));
    if (series !== null && recounted.series.has(nameOfSeries(series))) attested.set(nameOfSeries(series), series);
  }
  // An attestation from after a removal does not have the archived months.
  const has = (name: string, month: Instant) => attested.get(name)?.months.some(({ from }) => from === month) ?? false;
  for await (const found of attestedSeries(recounted, has)) {
    const name = nameOfSeries(found);
    const told = attested.get(name);
    if (told === undefined) yield finding(name, null, 'changed', 'the attestation does not have this series');
    else yield* compareOne(name, found, told, recounted);
  }
}

function* compareOne(
  name: string,
  found: AttestedSeries,
  told: AttestedSeries,
  { head, series }: Recounted,
): Generator<Finding> {
  const isSameState = found.steps === told.steps && found.link.equals(told.link);
  const verdict = isSameState ? 'tampered' : 'changed';
  const why = isSameState
    ? 'the attestation is of the same state of this series, but differs'
    : `the attestation is of step ${told.steps} of its evidence, but the files are of step ${found.steps}`;
  const byMonth = new Map(told.months.map((month) => [month.from, month]));
  let isWhole = true;
  for (const { from, digest, candles } of found.months) {
    const month = byMonth.get(from);
    byMonth.delete(from);
    const isEqual = month?.digest.equals(digest) ?? false;
    isWhole &&= isEqual;
    const counts = `${formatCounted(candles, 'final row')}; the attestation has ${month?.candles ?? 0}`;
    yield finding(name, nameOf(from), isEqual ? 'equal' : verdict, isEqual ? '' : `${counts}; ${why}`);
  }
  // Somebody could forge single short digests, but not the seal of all of them.
  const isAll = byMonth.size === 0 && head.from === null && head.to === null && series.get(name)!.unread.length === 0;
  if (isWhole && isAll && isSameState && found.seal !== null && told.seal !== null && !found.seal.equals(told.seal))
    yield finding(name, null, 'tampered', 'its short digests match, but its seal does not');
}
