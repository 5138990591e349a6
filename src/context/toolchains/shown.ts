// Names and places in messages, as the user wrote them: a compiler's names of imports and its lines are those
// of code that the user has never seen.
// Not here: frames of stacks (stack.ts).

import { functionName } from '../../lib/index.js';
import type { Described } from '../closures/describe.js';
import type { Script } from '../modules/scripts.js';
import type { AnyFunction } from '../types.js';
import { originalPlace } from './source-maps.js';
import { isViteImport, sourceOfVite } from './vite.js';

/** "function name (file.ts:3:1)", in the file that the user wrote. */
export function shownFunction(fn: AnyFunction, { code, place }: Described): string {
  const own = functionName(fn);
  const name = own === '' ? 'anonymous function' : `${code.isClass ? 'class' : 'function'} ${own}`;
  if (place === undefined) return name;
  return `${name} (${shownPlace(place.script, place.line, place.column)})`;
}

/**
 * A captured variable. A variable that Vite made of an import statement is shown as the import of that
 * module.
 */
export function shownVariable(name: string, script: Script | undefined): string {
  if (name === '__vite_ssr_export_default__') return 'export default';
  const source = isViteImport(name) ? sourceOfVite(name, script?.source ?? '') : '';
  return source === '' ? `variable ${name}` : `import of '${source}'`;
}

/** `line` and `column`: zero-based, in the code that V8 runs. */
function shownPlace(script: Script, line: number, column: number): string {
  const original = originalPlace(script.name, script.source, line, column);
  const place = original ?? { file: '', line, column };
  const file = lastPart(place.file) || lastPart(script.name);
  return `${file}:${place.line + 1}:${place.column + 1}`;
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
