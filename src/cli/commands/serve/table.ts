// Tables for people, as wide as their words. In a terminal that is narrower, the columns without room follow in
// further tables, each of which names its rows again: a line that wraps cannot be read.

export interface Column<T> {
  readonly head: string;
  readonly text: (line: T) => string;
  readonly isText?: boolean;
}

const gap = '  ';

/** Lines of one or more tables. The first `keys` columns name a row. `width`: of the terminal, else unlimited. */
export function columns<T>(
  of: readonly Column<T>[],
  rows: readonly T[],
  keys: number,
  width = process.stdout.isTTY ? process.stdout.columns : Infinity,
): string[] {
  const lines = [of.map(({ head }) => head), ...rows.map((row) => of.map(({ text }) => text(row)))];
  const widths = of.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
  const padded = (line: readonly string[], at: number): string => {
    const [cell = '', cellWidth = 0] = [line[at], widths[at]];
    return of[at]?.isText ? cell.padEnd(cellWidth) : cell.padStart(cellWidth);
  };
  return groups(widths, keys, width).flatMap((group, at) => [
    ...(at > 0 ? [''] : []),
    ...lines.map((line) =>
      group
        .map((column) => padded(line, column))
        .join(gap)
        .trimEnd(),
    ),
  ]);
}

/** Columns of each table, by number. A table has at least one column beside its keys. */
function groups(widths: readonly number[], keys: number, width: number): number[][] {
  const names = widths.slice(0, keys).map((_, at) => at);
  const widthOf = (group: readonly number[]): number =>
    group.reduce((sum, at) => sum + (widths[at] ?? 0) + gap.length, -gap.length);
  const made: number[][] = [];
  let group = names;
  for (let at = keys; at < widths.length; at += 1) {
    if (group.length > keys && widthOf([...group, at]) > width) {
      made.push(group);
      group = names;
    }
    group = [...group, at];
  }
  return [...made, group];
}
