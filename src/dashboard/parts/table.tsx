/** A table of rows. On a phone a wide one becomes blocks, one a row, each value behind the name of its column. */
import type { Child } from 'hono/jsx';
import type { Html } from '../html.ts';

export type Column<Row> = {
  readonly title: string;
  readonly cell: (row: Row) => Child;
  /** Numbers stand at the right. */
  readonly isNumber?: boolean;
  /** Its buttons change something: it is not printed. */
  readonly isForButtons?: boolean;
};

/** With more columns than these, the rows become blocks on a phone. */
const FEW_COLUMNS = 3;

/** Where CSS makes blocks of rows and cells, browsers take them for texts unless these say what they are. */
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
  /** What it says instead when there are no rows. */
  readonly empty: string;
}): Html {
  if (rows.length === 0) return <p class="soft">{empty}</p>;
  const isWide = columns.length > FEW_COLUMNS;
  const classes = columns.map(({ isNumber, isForButtons }) =>
    isForButtons ? 'buttons' : isNumber ? 'num' : undefined,
  );
  return (
    // A keyboard scrolls it sideways only when it can have the focus.
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
