// The place of a mistake in the text of a module: Node prints it for uncaught errors only, and keeps it from those of
// `import()`.

import { parse } from './parser.js';

/** Returns where the text is no JavaScript module, counted from 1; `undefined`: it is one, as far as acorn can say. */
export function syntaxErrorIn(text: string): { line: number; column: number } | undefined {
  try {
    parse(text, { ecmaVersion: 'latest', sourceType: 'module', allowHashBang: true });
    return undefined;
  } catch (error) {
    const { line, column }: { line?: unknown; column?: unknown } = Object(Object(error).loc);
    return typeof line === 'number' && typeof column === 'number'
      ? { line, column: column + 1 }
      : undefined;
  }
}
