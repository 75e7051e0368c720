/** Compares the warehouse with an attestation. It finds what is equal, has grown, was changed with a recorded reason, or was tampered with. */
import type { Instant } from '../../clock.ts';
import { formatCounted } from '../../core/format.ts';
import { type Interval, nameOfSeries, rowNoun } from '../../core/interval.ts';
import { keptMs, type Retention } from '../../core/settings/retention-settings.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { readEach } from '../verify/unreadable.ts';
import { NOTHING_YET } from './attestation.ts';
import { parse } from './check-file.ts';
import { compareBackdated } from './compare-backdated.ts';
import { compareTable, type TableFact } from './compare-table.ts';
import { compareUnattested } from './compare-unattested.ts';
import { type Finding, finding, type Verdict } from './finding.ts';
import { type AsOf, readAsOf } from './read-as-of.ts';
import { type CurrentSeries, type Found, findSeries, inPages, readCurrent, readFormerNames } from './read-series.ts';
import { type AttestedSeries, isSealed, nameOf, readSeries, SHORT_BYTES } from './series-line.ts';
import type { Month } from './series-state.ts';
import type { TABLES } from './tables.ts';

type CompareOptions = {
  readonly keep: Pick<Retention, 'candles' | 'tickers' | 'global' | 'exchanges'>;
  /** The instant of the attestation. */
  readonly at: Instant;
  readonly now: Instant;
};

/** Yields findings about each month of each series, about its evidence and revisions, and about each table. `facts`: lines of a checked file. */
export async function* compare(
  sql: Sql,
  facts: AsyncIterable<string>,
  { keep, at, now }: CompareOptions,
): AsyncGenerator<Finding> {
  const tables: TableFact[] = [];
  let origin: string | null = null;
  async function* series() {
    for await (const line of facts) {
      const fact = parse(line);
      const attested = readSeries(fact);
      if (attested !== null) yield attested;
      else if (isTable(fact)) tables.push(fact);
      else if (isOrigin(fact)) origin = fact.origin;
      else throw new Error(`the attestation has a line in an unknown form: ${line.slice(0, 80)}`);
    }
  }
  const steps = new Map<number, number>();
  const onSeries = (id: number, newest: number) => steps.set(id, Math.max(newest, steps.get(id) ?? 0));
  yield* compareAttested(sql, series(), keep, now, onSeries);
  const [here] = await sql<{ origin: string }[]>`select coalesce(simulator, 'upstream') as origin from ops.origin`;
  if (origin !== NOTHING_YET && origin !== (here?.origin ?? 'upstream'))
    yield finding(
      'the warehouse',
      null,
      'tampered',
      `${here === undefined ? 'holds nothing from an upstream' : `holds data of ${here.origin}`}, but the attestation is of data of ${origin}`,
    );
  const keptSince = ({ kept }: (typeof TABLES)[number]) =>
    kept === undefined || keep[kept] === null ? Number.NEGATIVE_INFINITY : now - keep[kept];
  for (const table of tables) yield await compareTable(sql, table, keptSince);
  // A warehouse that was empty may hold a restored backup since.
  if (origin === NOTHING_YET) return;
  yield* await compareUnattested(sql, tables, at);
  yield* await compareBackdated(sql, steps, at);
}

/** Compares only series. `attested` may also come from another source than an attestation. */
export async function* compareAttested(
  sql: Sql,
  attested: AsyncIterable<AttestedSeries>,
  keep: Pick<Retention, 'candles'>,
  now: Instant,
  /** Gets the number of each series that is there, and that of its newest step then. */
  onSeries?: (id: number, newest: number) => void,
): AsyncGenerator<Finding> {
  let former = await readFormerNames(sql);
  async function* counted() {
    for await (const one of attested)
      yield { ...one, candles: one.months.reduce((sum, month) => sum + month.candles, 0) };
  }
  yield* inPages(counted(), async (page): Promise<Finding[]> => {
    let found = await findSeries(sql, page, former);
    if (found.includes(undefined)) {
      // The coin may have got another id since.
      former = await readFormerNames(sql);
      found = await findSeries(sql, page, former);
    }
    const there = found.filter((one) => one !== undefined);
    for (const [i, series] of page.entries()) if (found[i] !== undefined) onSeries?.(found[i].id, series.steps);
    const current = there.length === 0 ? [] : await readCurrent(sql, there);
    const byId = new Map(current.map((one) => [one.seriesId, one]));
    const pairs = page.map((series, i) => ({ attested: series, current: byId.get(found[i]?.id ?? 0) }));
    const keptSince = (interval: Interval) => now - (keptMs(interval, keep.candles) ?? Number.POSITIVE_INFINITY);
    const names = page.flatMap((series, i) => judgeName(series, found[i]));
    const read = (some: readonly Pair[]) => compareSeries(sql, some, keptSince);
    return [...names, ...(await readEach(pairs, read, unreadable))];
  });
}

type Pair = { readonly attested: AttestedSeries; readonly current: CurrentSeries | undefined };
type Known = { readonly attested: AttestedSeries; readonly current: CurrentSeries };

/** The earliest time of candles that are kept, by the settings of retention. */
type KeptSince = (interval: Interval) => Instant;

/** A series whose coin has another id since is found by its evidence. `market.coin_rename` must have the change, too. */
function judgeName(attested: AttestedSeries, found: Found | undefined): Finding[] {
  if (found?.rename === undefined) return [];
  const { step, newId, isRecorded, isReplaced } = found.rename;
  const detail = `step ${step} of its evidence says that ${attested.coinId} is ${newId} now`;
  const name = nameOfSeries(attested);
  if (isRecorded) return [finding(name, null, 'renamed', detail)];
  return [
    isReplaced
      ? finding(name, null, 'renamed', `${detail}; market.coin_rename has only a later change of ${attested.coinId}`)
      : finding(name, null, 'tampered', `${detail}, and market.coin_rename does not`),
  ];
}

function unreadable({ attested }: Pair, why: string): Finding[] {
  const detail = `its stored rows have values that Chandler never writes (${why})`;
  return [finding(nameOfSeries(attested), null, 'tampered', detail)];
}

async function compareSeries(sql: Sql, pairs: readonly Pair[], keptSince: KeptSince): Promise<Finding[]> {
  const known = pairs.filter((pair): pair is Known => pair.current !== undefined);
  const differing = known.map((pair) => pair.attested.months.filter((month) => !isEqualNow(pair, month)));
  const then = await readAsOf(
    sql,
    known.map(({ attested, current }, i) => ({
      seriesId: current.seriesId,
      interval: attested.interval,
      step: attested.steps,
      months: differing[i]!.map(({ from }) => from),
    })),
  );
  const findings = new Map(known.map((pair, i) => [pair.attested, judge(pair, then[i]!, keptSince)]));
  return pairs.flatMap(
    ({ attested }) =>
      findings.get(attested) ?? [finding(nameOfSeries(attested), null, 'tampered', 'the series is missing')],
  );
}

function isEqualNow({ current }: Known, month: Month): boolean {
  const now = current.months.find(({ from }) => from === month.from);
  return now !== undefined && isPrefixOf(month.digest, now.digest);
}

function isPrefixOf(prefix: Buffer, digest: Buffer): boolean {
  return digest.subarray(0, SHORT_BYTES).equals(prefix);
}

function judge(pair: Known, then: AsOf, keptSince: KeptSince): Finding[] {
  const { attested, current } = pair;
  const name = nameOfSeries(attested);
  const findings: Finding[] = [];
  const whole: { digest: Buffer }[] = [];
  for (const month of attested.months) {
    const now = current.months.find(({ from }) => from === month.from);
    const isEqual = now !== undefined && isPrefixOf(month.digest, now.digest);
    const before = then.months.get(month.from);
    whole.push({ digest: isEqual ? now.digest : (before?.digest ?? Buffer.alloc(0)) });
    findings.push(
      finding(
        name,
        nameOf(month.from),
        ...(isEqual
          ? (['equal', ''] as const)
          : judgeMonth(month, now, before!, {
              ...then,
              keptSince: keptSince(attested.interval),
              noun: rowNoun(attested.interval),
            })),
      ),
    );
  }
  if (!then.isCoverageTrue && findings.every(({ verdict }) => verdict !== 'tampered'))
    findings.push(finding(name, null, 'tampered', 'its coverage differs from its evidence'));
  const isLinked = attested.steps === 0 || (then.link !== null && isPrefixOf(attested.link, then.link));
  if (then.link?.length === 0) {
    const isKept = keptSince(attested.interval) === Number.NEGATIVE_INFINITY;
    const detail = `retention removed the rows that prove its evidence up to step ${attested.steps}`;
    const unlike = 'but CHANDLER_KEEP_CANDLES keeps all candles here';
    findings.push(
      isKept ? finding(name, null, 'tampered', `${detail}, ${unlike}`) : finding(name, null, 'removed', detail),
    );
  } else if (!isLinked) {
    const detail =
      current.steps < attested.steps
        ? `its evidence has ${formatCounted(current.steps, 'step')}; the attestation has ${attested.steps}`
        : `its evidence up to step ${attested.steps} was changed`;
    findings.push(finding(name, null, 'tampered', detail));
  }
  if (!isPrefixOf(attested.records, then.records))
    findings.push(
      finding(name, null, 'tampered', 'its older revisions, or the requests of its evidence, were changed'),
    );
  // The file has short digests, and the seal covers whole ones. It can be checked only when nothing was removed.
  const isExplained = findings.every(({ verdict }) => verdict !== 'tampered' && verdict !== 'removed');
  const link = attested.steps === 0 ? Buffer.alloc(0) : (then.link ?? Buffer.alloc(0));
  if (isExplained && attested.seal !== null && !isSealed(attested.seal, { link, records: then.records, months: whole }))
    findings.push(finding(name, null, 'tampered', 'its short digests match, but its seal does not'));
  return findings;
}

function judgeMonth(
  month: Month,
  now: CurrentSeries['months'][number] | undefined,
  before: NonNullable<ReturnType<AsOf['months']['get']>>,
  {
    isCoverageTrue,
    keptSince,
    noun,
  }: Pick<AsOf, 'isCoverageTrue'> & { readonly keptSince: Instant; readonly noun: 'candle' | 'price' },
): readonly [Verdict, string] {
  const { candles = 0, slots = 0 } = now ?? {};
  const counts = `${formatCounted(candles, `final ${noun}`)} in ${formatCounted(slots, 'covered slot')}; the attestation has ${month.candles} in ${month.slots}`;
  if (!isCoverageTrue) return ['tampered', `coverage differs from the evidence; ${counts}`];
  if (before.removed > 0) {
    const slots = formatCounted(before.removed, 'slot');
    // Retention removes only partitions in which every candle is too old.
    return before.removedTo! > keptSince
      ? [
          'tampered',
          `${slots} were removed as if by retention, but CHANDLER_KEEP_CANDLES keeps candles of that age here`,
        ]
      : ['removed', `retention removed ${slots}`];
  }
  if (!isPrefixOf(month.digest, before.digest))
    return ['tampered', `differs from the attestation, and no revision explains it; ${counts}`];
  const why = before.reasons.join(', ');
  if (before.revised > 0)
    return ['revised', `${formatCounted(before.revised, 'revision')} on record (${why}); ${counts}`];
  return slots < month.slots ? ['mended', counts] : ['grown', counts];
}

function isTable(fact: unknown): fact is TableFact {
  return typeof (fact as TableFact | null)?.table === 'string';
}

function isOrigin(fact: unknown): fact is { readonly origin: string } {
  return typeof (fact as { origin?: unknown } | null)?.origin === 'string';
}
