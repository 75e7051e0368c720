/** A table of rows. On a phone, each row of a wide table becomes a block, with each value after the name of its column. */
import type { Child } from 'hono/jsx';
import type { Html } from '../html.ts';

export type Column<Row> = {
  readonly title: string;
  readonly cell: (row: Row) => Child;
  /** Numbers are aligned on the right. */
  readonly isNumber?: boolean;
  /** The column has buttons that change something, so it is not printed. */
  readonly isForButtons?: boolean;
};

/** A table with more columns becomes blocks on a phone. */
const FEW_COLUMNS = 3;

/** When CSS turns rows and cells into blocks, browsers treat them as plain text unless these roles say what they are. */
const ROLES = {
  table: { role: 'table' },
  rows: { role: 'rowgroup' },
  row: { role: 'row' },
  title: { role: 'columnheader' },
  cell: { role: 'cell' },
} as const;

export function Table<Row>({
  caption,
  rows,
  columns,
  empty,
}: {
  readonly caption: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  /** The text when there are no rows. */
  readonly empty: string;
}): Html {
  if (rows.length === 0) return <p class="soft">{empty}</p>;
  const isWide = columns.length > FEW_COLUMNS;
  const classes = columns.map(({ isNumber, isForButtons }) =>
    isForButtons ? 'buttons' : isNumber ? 'num' : undefined,
  );
  return (
    // With the focus on it, the keyboard can scroll it sideways.
    <section class={isWide ? 'table wide' : 'table'} tabindex={0} aria-label={caption}>
      <table {...(isWide ? ROLES.table : {})}>
        <caption>{caption}</caption>
        <thead {...(isWide ? ROLES.rows : {})}>
          <tr {...(isWide ? ROLES.row : {})}>
            {columns.map(({ title }, i) => (
              <th scope="col" class={classes[i]} {...(isWide ? ROLES.title : {})}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody {...(isWide ? ROLES.rows : {})}>
          {rows.map((row) => (
            <tr {...(isWide ? ROLES.row : {})}>
              {columns.map(({ title, cell }, i) => (
                <td class={classes[i]} {...(isWide ? { ...ROLES.cell, 'data-label': title } : {})}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
