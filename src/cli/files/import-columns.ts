/** The text of `chandler import` about the columns: which it reads, as what, and which it does not use. */
import { formatCounted } from '../../core/format.ts';
import type { ColumnMapping, FileToImport } from '../../lake/import/open-files.ts';
import type { Output } from '../shell/io.ts';

/** Files with the same columns. */
export type ColumnsOfFiles = ColumnMapping & { readonly files: readonly string[] };

export function columnsOfFiles(files: readonly Pick<FileToImport, 'name' | 'mapping'>[]): ColumnsOfFiles[] {
  const found = new Map<string, ColumnMapping & { readonly files: string[] }>();
  for (const { name, mapping } of files) {
    const key = JSON.stringify(mapping);
    const known = found.get(key);
    if (known === undefined) found.set(key, { ...mapping, files: [name] });
    else known.files.push(name);
  }
  return [...found.values()];
}

/** The text names at most so many kinds of files. */
const MOST_KINDS = 5;

export function printColumns(out: Output, kinds: readonly ColumnsOfFiles[]): void {
  for (const { files, read, notUsed } of kinds.slice(0, MOST_KINDS)) {
    const columns = Object.entries(read).map(([role, name]) => (role === name ? role : `${role} ← ${nameOf(name)}`));
    const others = notUsed.length === 0 ? '' : `; not used: ${notUsed.map(nameOf).join(', ')}`;
    const more = files.length === 1 ? '' : `, and ${formatCounted(files.length - 1, 'file')} like it`;
    const whose = kinds.length === 1 ? '' : ` (${files[0]}${more})`;
    out.write(`read: ${columns.join(', ')}${others}${whose}\n`);
  }
  if (kinds.length > MOST_KINDS) out.write(`--json has the columns of all files\n`);
}

/** A number is the position of a column without a name. */
const nameOf = (name: string) => (/^\d+$/.test(name) ? `column ${name}` : name === '' ? '(no name)' : name);
