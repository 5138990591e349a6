// The parts of docs/design/vertx.md that follow from the tables of cases.

/** The fields that both kinds of cases have. */
export interface Listed {
  readonly name: string;
  readonly differs?: string;
  readonly absent?: string;
  readonly overNats?: string;
  readonly shownBy?: readonly [file: string, title: string];
}

/** Returns a row of counts: all cases, as expected, different, absent. */
export function countRow(title: string, cases: readonly Listed[]): string {
  const differs = cases.filter((each) => each.differs !== undefined).length;
  const absent = cases.filter((each) => each.absent !== undefined).length;
  const same = cases.length - differs - absent;
  return `| ${title} | ${cases.length} | ${same} | ${differs} | ${absent} |`;
}

/** Returns a table of reasons, each with the cases that it is of. */
export function reasonTable(
  cases: readonly Listed[],
  kind: 'differs' | 'absent' | 'overNats',
): string {
  const names = new Map<string, string[]>();
  for (const { name, [kind]: reason } of cases) {
    if (reason !== undefined) names.set(reason, [...(names.get(reason) ?? []), `\`${name}\``]);
  }
  const rows = [...names].map(([reason, all]) => `| ${reason} | ${all.join(', ')} |`);
  return ['| reason | cases |', '|---|---|', ...rows].join('\n');
}
