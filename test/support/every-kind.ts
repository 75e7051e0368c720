/** A record with the same value for every kind of the catalogue. */
import { CATALOGUE_KINDS, type CatalogueKind } from '../../src/store/catalogue/catalogue-item.ts';

export function everyKind<T>(of: (kind: CatalogueKind) => T): Record<CatalogueKind, T> {
  return Object.fromEntries(CATALOGUE_KINDS.map((kind) => [kind, of(kind)])) as Record<CatalogueKind, T>;
}
