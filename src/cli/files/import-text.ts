/** The text that `chandler import` prints at its end. */
import { formatCount, formatCounted, formatInstant } from '../../core/format.ts';
import type { Proved } from '../../lake/import/from-export.ts';
import type { Imported } from '../../lake/import/import.ts';
import { TIME_FORMS, type TimeForm } from '../../lake/import/values.ts';
import { MOST_NAMED } from '../../lake/import/wrong-rows.ts';
import type { Output } from '../shell/io.ts';
import type { ColumnsOfFiles } from './import-columns.ts';

type ImportReport = {
  readonly source: string;
  readonly files: number;
  readonly bytes: number;
  readonly imported: Imported;
  /** Null when no export was imported. */
  readonly proved: Proved | null;
  readonly leftOut: readonly string[];
  readonly columns: readonly ColumnsOfFiles[];
};

const FORM: Readonly<Record<TimeForm, string>> = {
  s: 'numbers of seconds',
  ms: 'numbers of milliseconds',
  us: 'numbers of microseconds',
  ns: 'numbers of nanoseconds',
  instant: 'instants of the file',
  text: 'text with its zone',
  'text in UTC': 'text without a zone, taken as UTC',
};

export function printImport(out: Output, { source, files, imported, proved }: ImportReport): void {
  const { outcome, rows, added, same, twice, updated, replaced, wrong, series } = imported;
  const forms = TIME_FORMS.filter((form) => imported.times[form] > 0);
  if (forms.length > 0)
    out.write(
      `times: ${forms.map((form) => (forms.length > 1 ? `${FORM[form]} (${formatCount(imported.times[form])})` : FORM[form])).join(', ')}\n`,
    );
  const missing = Object.entries(imported.missing).filter(([, count]) => count > 0);
  if (missing.length > 0)
    out.write(`rows without a value: ${missing.map(([name, count]) => `${name} ${formatCount(count)}`).join(', ')}\n`);
  printWrong(out, imported);
  switch (outcome) {
    case 'wrong':
      out.write(`Nothing was stored. Correct the files, or leave these rows out with --skip-wrong.\n`);
      return;
    case 'other':
      printOther(out, source, imported);
      return;
    case 'checked':
      out.write(
        `${formatCounted(rows, 'row')} of ${formatCounted(series.length, 'series')} checked. Nothing was stored, and rows were not compared with each other or with stored candles.\n`,
      );
      return;
    case 'stored': {
      const parts = [
        `${formatCounted(added, 'candle')} added`,
        ...(updated > 0 ? [`${formatCount(updated)} updated that ${updated === 1 ? 'was' : 'were'} not final`] : []),
        ...(replaced > 0 ? [`${formatCount(replaced)} replaced`] : []),
        ...(same > 0 ? [`${formatCounted(same, 'row')} already there`] : []),
        ...(twice > 0 ? [`${formatCounted(twice, 'row')} twice in the ${files === 1 ? 'file' : 'files'}`] : []),
        ...(wrong.count > 0 ? [`${formatCounted(wrong.count, 'wrong row')} left out`] : []),
      ];
      out.write(
        `\n${source}: ${parts.join(', ')}; ${formatCounted(rows, 'row')} of ${formatCounted(series.length, 'series')} read\n`,
      );
      if (proved !== null)
        out.write(
          `Recounted from the table: ${formatCounted(proved.months, 'month')} of ${formatCounted(proved.series, 'series')} have the digests of the manifest.\n`,
        );
      out.write(
        `chandler sql "select * from market.candles_all where source = '${source}'" shows them, chandler import list all sources.\n`,
      );
    }
  }
}

function printWrong(out: Output, { wrong }: Imported): void {
  if (wrong.count === 0) return;
  out.write(`\n${formatCounted(wrong.count, 'wrong row')}:\n`);
  const reasons = wrong.reasons();
  for (const { reason, rows } of reasons.slice(0, MOST_NAMED)) out.write(`  ${formatCount(rows)} × ${reason}\n`);
  if (reasons.length > MOST_NAMED) out.write(`  … for ${formatCounted(reasons.length - MOST_NAMED, 'other reason')}\n`);
  const more = wrong.count > MOST_NAMED ? `the first ${MOST_NAMED}` : 'which';
  out.write(`${more}:\n`);
  for (const { file, record, reason } of wrong.first)
    out.write(`  ${file}, record ${formatCount(record)}: ${reason}\n`);
}

const NAMES = ['open', 'high', 'low', 'close', 'volume', 'market_cap'];

function printOther(out: Output, source: string, { other }: Imported): void {
  const are = other.slots === 1 ? 'is' : 'are';
  out.write(`${formatCounted(other.slots, 'candle')} of ${source} ${are} there already with other values.\n`);
  if (other.first !== null) {
    const { fileName, record, series, openTime, stored, given } = other.first;
    const changed = NAMES.flatMap((name, i) =>
      stored[i] === given[i] ? [] : [`${name} ${stored[i] ?? 'null'}, in the file ${given[i] ?? 'null'}`],
    );
    const at = formatInstant(Date.parse(`${openTime.replace(' ', 'T')}Z`));
    out.write(
      `  ${fileName}, record ${formatCount(record)}: ${series.coinId} ${series.interval} ${series.quote} at ${at} has ${changed.join('; ')}\n`,
    );
  }
  out.write('Nothing was stored. --replace replaces them.\n');
}

export function importAsJson({ source, files, bytes, imported, proved, leftOut, columns }: ImportReport) {
  const { wrong, times, missing, ...rest } = imported;
  return {
    source,
    files,
    bytes,
    columns,
    ...rest,
    times: Object.fromEntries(TIME_FORMS.filter((form) => times[form] > 0).map((form) => [form, times[form]])),
    missing: Object.fromEntries(Object.entries(missing).filter(([, count]) => count > 0)),
    wrong: { count: wrong.count, reasons: wrong.reasons(), first: wrong.first },
    proved,
    leftOut,
  };
}
