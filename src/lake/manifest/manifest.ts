/**
 * The manifest of an export: what its files are, of which state of which series, and why what is missing is missing. It is JSON, and each
 * of its elements stands on a line of its own, so that neither writing nor reading needs it in memory as a whole. docs/export.md describes it.
 */
import { normalize, type Span, type Spans } from '../../core/span.ts';
import type { DatasetColumn } from '../dataset/dataset.ts';
import type { EncodedMonths } from '../digest/month-book.ts';
import type { Format } from '../format/format.ts';
import type { Layout } from '../layout/layout.ts';

export const MANIFEST_FILE = 'manifest.json';
export const MANIFEST_FORMAT = 1;

/** By hand, or kept up to date by the service (docs/lake.md). */
export type ExportKind = 'export' | 'lake';

export type ManifestHead = {
  readonly kind: ExportKind;
  /** ISO 8601: the instant of the snapshot that everything is of. */
  readonly at: string;
  /** Version of Chandler. */
  readonly chandler: string;
  /** Whose data these are: `upstream`, or the market of a simulator. */
  readonly origin: string;
  /** Of a lake: the same in all of its manifests, and in no other lake. Earlier versions wrote none. */
  readonly id?: string;
  readonly format: Format;
  readonly layout: Layout;
  readonly what: readonly string[];
  /** Null: all. */
  readonly coins: readonly string[] | null;
  readonly intervals: readonly string[] | null;
  /** ISO 8601; null: not limited. */
  readonly from: string | null;
  readonly to: string | null;
  readonly finalOnly: boolean;
};

export type ManifestDataset = {
  readonly name: string;
  /** Of its files; in the layout `hive`, `interval`, `quote` and `year` are in their paths. Null: the form is that of a tool. */
  readonly columns: readonly (DatasetColumn & { readonly unit?: 'milliseconds' })[] | null;
};

export type ManifestSeries = {
  /** `btc-bitcoin usd 24h`. */
  readonly series: string;
  /** Of its evidence at that instant: the number of the newest step, its link, and the digest of revisions and requests, in hexadecimal digits. */
  readonly steps: number;
  readonly link: string;
  readonly records: string;
  /** Spans with a final answer, within what was exported. */
  readonly covered: readonly (readonly [from: string | null, to: string | null])[];
  /** What is wanted within what was exported, and has no final answer; with the reason, as in `market.gaps`. */
  readonly gaps: readonly (readonly [from: string, to: string, reason: string, detail: string | null])[];
  /** Digests of its months, as in an attestation (`digest/month-book.ts`): of those of which all was exported. Null: there is none. */
  readonly months: EncodedMonths | null;
};

export type ManifestFile = {
  readonly path: string;
  readonly dataset: string;
  readonly interval: string | null;
  readonly quote: string | null;
  /** ISO 8601; null: not limited. Of the times of its rows. */
  readonly from: string | null;
  readonly to: string | null;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** Two files of the same version have the same rows. Null: nothing tells but the bytes. */
  readonly version: string | null;
  /** Of a lake: Postgres may not have these rows any more, or not all of them; the file stays as it is. */
  readonly isArchived?: true;
};

/** Of a lake: a file that an earlier manifest named. It stays for readers of that manifest, for a day. */
export type RetiredFile = {
  readonly path: string;
  /** ISO 8601: no manifest has named it since then. */
  readonly since: string;
};

/** The lists of a manifest, in their order. */
export const LISTS = ['datasets', 'series', 'files', 'retired'] as const;
export type List = (typeof LISTS)[number];

export type ManifestElement =
  | { readonly list: 'datasets'; readonly element: ManifestDataset }
  | { readonly list: 'series'; readonly element: ManifestSeries }
  | { readonly list: 'files'; readonly element: ManifestFile }
  | { readonly list: 'retired'; readonly element: RetiredFile };

/** Instants of spans, for JSON; null where it has no bound. */
export function spansAsIso(spans: Spans): (readonly [string | null, string | null])[] {
  return spans.map(({ from, to }) => [isoOrNull(from), isoOrNull(to)] as const);
}

export function spansOf(told: ManifestSeries['covered']): Spans {
  return normalize(told.map((span) => spanOfFile({ from: span[0], to: span[1] })));
}

export function isoOrNull(at: number): string | null {
  return Number.isFinite(at) ? new Date(at).toISOString() : null;
}

export function instantOr(text: string | null, otherwise: number): number {
  return text === null ? otherwise : Date.parse(text);
}

export function spanOfFile({ from, to }: Pick<ManifestFile, 'from' | 'to'>): Span {
  return { from: instantOr(from, Number.NEGATIVE_INFINITY), to: instantOr(to, Number.POSITIVE_INFINITY) };
}
