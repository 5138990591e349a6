// Table that scrolls sideways on a narrow page, and is reachable by keyboard.

import type { ComponentChildren } from 'preact';
import { busyConcern, type Concern } from '../src/observe/limits.js';

export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** True: aligned left. */
  readonly isText?: boolean;
  /** True: left out on a phone. */
  readonly isSpare?: boolean;
  /** Highlighting of a cell. */
  readonly tone?: (row: Row) => Concern;
}

interface Props<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
}

export function Table<Row>({ label, columns, rows, keyOf }: Props<Row>) {
  const classOf = ({ isText, isSpare }: Column<Row>): string =>
    `${isText ? 'text' : ''} ${isSpare ? 'spare' : ''}`;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: makes scrolling reachable by keyboard
    <section class="scroll" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th scope="col" class={classOf(column)} key={column.head}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td class={`${classOf(column)} ${column.tone?.(row) ?? ''}`} key={column.head}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** A share of 1 with a bar. */
export function Share({
  value,
  text,
}: {
  readonly value: number | undefined;
  readonly text: string;
}) {
  return (
    <span class={`share ${busyConcern(value)}`}>
      <span class="bar" style={{ width: `${100 * Math.min(1, value ?? 0)}%` }} />
      <span class="share-text">{text}</span>
    </span>
  );
}
