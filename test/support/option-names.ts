// The options that an interface of the sources declares.

import ts from 'typescript';
import { readRepositoryFile } from './repository.js';

/** Returns the names of the members of interface `name`, in order; none where there is no such interface. */
export function membersOf(file: string, name: string): string[] {
  const source = ts.createSourceFile(file, readRepositoryFile(file), ts.ScriptTarget.ES2023);
  const found = source.statements.filter(ts.isInterfaceDeclaration);
  const members = found.find((each) => each.name.text === name)?.members ?? [];
  return members.map((each) =>
    each.name !== undefined && ts.isIdentifier(each.name) ? each.name.text : '',
  );
}
