/**
 * The manifest of an export: the contents of its files, the state of each series, and the reasons of its gaps. It is JSON, and each of its elements
 * is on a line of its own, so that neither writing nor reading needs all of it in memory. docs/export.md describes it.
 */
import { normalize, type Span, type Spans } from '../../core/span.ts';
import type { DatasetColumn } from '../dataset/dataset.ts';
import type { EncodedMonths } from '../digest/month-book.ts';
import type { Format } from '../format/format.ts';
import type { Layout } from '../layout/layout.ts';

export const MANIFEST_FILE = 'manifest.json';
export const MANIFEST_FORMAT = 1;

/** Made by hand, or kept up to date by the service (docs/lake.md). */
export type ExportKind = 'export' | 'lake';

export type ManifestHead = {
  readonly kind: ExportKind;
  /** ISO 8601: the instant of the snapshot from which all data come. */
  readonly at: string;
  /** Version of Chandler. */
  readonly chandler: string;
  /** The source of the data: `upstream`, or the market of a simulator. */
  readonly origin: string;
  /** The id of a lake: the same in all of its manifests, and in no other lake. Earlier versions wrote none. */
  readonly id?: string;
  readonly format: Format;
  readonly layout: Layout;
  readonly what: readonly string[];
  /** Null: all. */
  readonly coins: readonly string[] | null;
  readonly intervals: readonly string[] | null;
  /** ISO 8601; null: unlimited. */
  readonly from: string | null;
  readonly to: string | null;
  readonly finalOnly: boolean;
};

export type ManifestDataset = {
  readonly name: string;
  /**
   * The columns of its files. In the layout `hive`, `interval`, `quote` and `year` are in the paths instead. Null: the format is that of a tool.
   */
  readonly columns: readonly (DatasetColumn & { readonly unit?: 'milliseconds' })[] | null;
};

export type ManifestSeries = {
  /** `btc-bitcoin usd 24h`. */
  readonly series: string;
  /**
   * The state of its evidence at that instant: the number of the newest step, its link, and the digest of revisions and requests, in hexadecimal
   * digits.
   */
  readonly steps: number;
  readonly link: string;
  readonly records: string;
  /** Spans with a final answer, within the export. */
  readonly covered: readonly (readonly [from: string | null, to: string | null])[];
  /** Wanted spans within the export that have no final answer; with the reason, as in `market.gaps`. */
  readonly gaps: readonly (readonly [from: string, to: string, reason: string, detail: string | null])[];
  /** Digests of the months that were wholly exported, as in an attestation (`digest/month-book.ts`). Null: there is none. */
  readonly months: EncodedMonths | null;
};

export type ManifestFile = {
  readonly path: string;
  readonly dataset: string;
  readonly interval: string | null;
  readonly quote: string | null;
  /** The bounds of the times of its rows, in ISO 8601; null: unlimited. */
  readonly from: string | null;
  readonly to: string | null;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** Two files of the same version have the same rows. Null: only the bytes show whether they do. */
  readonly version: string | null;
  /** In a lake: Postgres may no longer have these rows, or not all of them. The file stays as it is. */
  readonly isArchived?: true;
};

/** In a lake: a file that an earlier manifest named. It stays for a day, for readers of that manifest. */
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

/** Instants of spans, for JSON; null for a missing bound. */
export function spansAsIso(spans: Spans): (readonly [string | null, string | null])[] {
  return spans.map(({ from, to }) => [isoOrNull(from), isoOrNull(to)] as const);
}

export function spansOf(told: ManifestSeries['covered']): Spans {
  return normalize(told.map((span) => spanOfFile({ from: span[0], to: span[1] })));
}

export function isoOrNull(at: number): string | null {
  return Number.isFinite(at) ? new Date(at).toISOString() : null;
}

function instantOr(text: string | null, otherwise: number): number {
  return text === null ? otherwise : Date.parse(text);
}

export function spanOfFile({ from, to }: Pick<ManifestFile, 'from' | 'to'>): Span {
  return { from: instantOr(from, Number.NEGATIVE_INFINITY), to: instantOr(to, Number.POSITIVE_INFINITY) };
}
