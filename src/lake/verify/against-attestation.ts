/** Compares recounted files with an attestation. This needs no warehouse. */

import type { Instant } from '../../clock.ts';
import { monthReset } from '../../core/calendar.ts';
import { formatCounted, formatInstant } from '../../core/format.ts';
import { isPriceInterval, nameOfSeries } from '../../core/interval.ts';
import { keptMs, type Retention } from '../../core/settings/retention-settings.ts';
import { contains, subtract } from '../../core/span.ts';
import { parse } from '../../views/attestation/check-file.ts';
import { type Finding, finding } from '../../views/attestation/finding.ts';
import { type AttestedSeries, nameOf, readSeries } from '../../views/attestation/series-line.ts';
import type { Month } from '../../views/attestation/series-state.ts';
import { wholeMonths } from '../export/write-file.ts';
import { spanOfFile } from '../manifest/manifest.ts';
import { attestedSeries } from './against-warehouse.ts';
import { isIn, type Recounted } from './recount.ts';

type AttestationOptions = {
  /** The instant of the attestation. */
  readonly at: Instant;
  readonly keep: Pick<Retention, 'candles'>;
};

/**
 * `facts`: lines of a checked attestation. Each month of a series is `equal`, `changed` or `tampered`. `changed`: the attestation is of another
 * state of the evidence of the series, so only the warehouse can say why. `tampered`: it is of the same state. Attested months and series that the
 * files should have and do not have are compared, too.
 */
export async function* compareWithAttestation(
  recounted: Recounted,
  facts: AsyncIterable<string>,
  options: AttestationOptions,
): AsyncGenerator<Finding> {
  const attested = new Map<string, AttestedSeries>();
  const missing: AttestedSeries[] = [];
  for await (const line of facts) {
    const series = readSeries(parse(line));
    if (series === null) continue;
    if (recounted.series.has(nameOfSeries(series))) attested.set(nameOfSeries(series), series);
    // An export leaves out series without rows.
    else if (dueMonths(recounted, series, series.months).some(({ candles }) => candles > 0)) missing.push(series);
  }
  // An attestation from after a removal does not have the archived months.
  const has = (name: string, month: Instant) => attested.get(name)?.months.some(({ from }) => from === month) ?? false;
  for await (const found of attestedSeries(recounted, has)) {
    const name = nameOfSeries(found);
    const told = attested.get(name);
    if (told === undefined) yield finding(name, null, 'changed', 'the attestation does not have this series');
    else yield* compareOne(name, found, told, recounted);
  }
  const unattested = [...recounted.series].flatMap(([name, series]) => (attested.has(name) ? [] : [series]));
  for (const told of missing) yield judgeMissing(told, unattested, recounted, options);
}

/** Those of the attested months that the files should have. */
function dueMonths({ head, files, series }: Recounted, told: AttestedSeries, months: Iterable<Month>): Month[] {
  const { coinId, interval } = told;
  const isSelected =
    head.what.includes(isPriceInterval(interval) ? 'prices' : 'candles') &&
    (head.coins === null || head.coins.includes(coinId)) &&
    (head.intervals === null || head.intervals.includes(interval));
  if (!isSelected) return [];
  const whole = wholeMonths(spanOfFile(head));
  const unread = series.get(nameOfSeries(told))?.unread ?? [];
  return [...months].filter(({ from, candles, slots }) => {
    if (slots === 0 || !contains(whole, from) || contains(unread, from)) return false;
    const inMonth = files.filter((file) => isIn(told, file) && contains([spanOfFile(file)], from));
    // An archived file stays as it is, also if the warehouse gets candles of its time later.
    if (inMonth.some(({ isArchived }) => isArchived)) return false;
    // A time without any row has no file.
    return candles > 0 || inMonth.length > 0;
  });
}

/** The files have no state of the series. So only what could have removed it from an export shows whether it is a difference. */
function judgeMissing(
  told: AttestedSeries,
  unattested: readonly Pick<AttestedSeries, 'quote' | 'interval' | 'steps'>[],
  { head }: Recounted,
  { at, keep }: AttestationOptions,
): Finding {
  const { quote, interval, steps, months } = told;
  const name = nameOfSeries(told);
  const filesAt = Date.parse(head.at);
  if (at > filesAt)
    return finding(name, null, 'changed', 'the files are older than the attestation, and lack the series');
  const kept = keptMs(interval, keep.candles);
  const last = months.findLast(({ candles }) => candles > 0)!;
  if (kept !== null && monthReset(last.from) <= filesAt - kept)
    return finding(name, null, 'removed', 'CHANDLER_KEEP_CANDLES keeps no candles of that age');
  // A change of the id of a coin is a step.
  const isRenamed = unattested.some((one) => one.quote === quote && one.interval === interval && one.steps > steps);
  if (isRenamed) return finding(name, null, 'changed', 'the files lack the series; its coin may have another id since');
  return finding(name, null, 'tampered', `the series is missing, but it was attested at ${formatInstant(at)}`);
}

function* compareOne(
  name: string,
  found: AttestedSeries,
  told: AttestedSeries,
  recounted: Recounted,
): Generator<Finding> {
  const { head } = recounted;
  const { covered, archived, unread } = recounted.series.get(name)!;
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
  for (const { from, candles } of dueMonths(recounted, told, byMonth.values())) {
    isWhole = false;
    // If only archived files have the series, its coin may have another id since. Then its other months have that id.
    const isOfArchive = archived.length > 0 && subtract(covered, archived).length === 0;
    const counts = `is missing; the attestation has ${formatCounted(candles, 'final row')}`;
    yield finding(name, nameOf(from), isOfArchive ? 'changed' : verdict, `${counts}; ${why}`);
  }
  // Somebody could forge single short digests, but not the seal of all of them.
  const isAll = byMonth.size === 0 && head.from === null && head.to === null && unread.length === 0;
  if (isWhole && isAll && isSameState && found.seal !== null && told.seal !== null && !found.seal.equals(told.seal))
    yield finding(name, null, 'tampered', 'its short digests match, but its seal does not');
}
