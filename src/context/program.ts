// The modules that no host may load: the program's entry, as Node resolved it, and modules of the
// user that start tasks while they load. A host that imported one would run the program once more.
// What such a module defines travels by value instead. Not here: references by name (references.ts).

import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { AnyNode } from 'acorn';
import { isCopied } from './copies.js';
import type { Analysis } from './scope.js';
import { analysisOf } from './scripts.js';

const require = createRequire(import.meta.url);

/** The URLs of each entry that `process.argv[1]` has named so far. */
const entries = new Map<string, readonly string[]>();
let lastEntry: string | undefined;
const ofProgram = new Set<string>();
const verdicts = new Map<string, boolean>();

/** True: `url` names the program, a module that starts tasks while it loads, or one that is copied. */
export function isProgram(url: string): boolean {
  const bare = url.replace(/[?#].*/, '');
  if (isCopied(bare)) return true;
  if (isEntry(bare)) return true;
  const known = verdicts.get(bare);
  if (known !== undefined) return known;
  const isStarter = isOfUser(bare) && startsTasks(bare);
  verdicts.set(bare, isStarter);
  return isStarter;
}

/** True: Node was started with the file at `url`. */
export function isEntry(url: string): boolean {
  noteEntry();
  return ofProgram.has(url.replace(/[?#].*/, ''));
}

/** True: loading the module at `url` again does nothing but define what it exports. */
export function isDeclarative(url: string): boolean {
  if (!isOfUser(url)) return true;
  const analysis = analysisOf(url.replace(/[?#].*/, ''));
  return analysis !== undefined && !actsAtTop(analysis);
}

/** `process.argv[1]` may be a folder, a name without an extension, a link, and changes in a server. */
function noteEntry(): void {
  const path = process.argv[1];
  const filename = process.mainModule?.filename;
  const key = `${path}\n${filename}`;
  if (key === lastEntry) return;
  lastEntry = key;
  if (entries.has(key)) return;
  const found = [path, filename].flatMap((each) => (each === undefined ? [] : urlsOf(each)));
  entries.set(key, found);
  for (const url of found) ofProgram.add(url);
}

/** The URL of the file that Node runs for `path`, under its own name and its real one. */
function urlsOf(path: string): string[] {
  try {
    const file = require.resolve(path);
    return [pathToFileURL(file).href, pathToFileURL(realpathSync(file)).href];
  } catch {
    return []; // there is none: REPL, --eval
  }
}

/** Packages do not start tasks of the user. */
function isOfUser(url: string): boolean {
  return url.startsWith('file:') && !url.includes('/node_modules/');
}

function startsTasks(url: string): boolean {
  const analysis = analysisOf(url);
  return analysis !== undefined && actsAtTop(analysis) && reachesUs(url, new Set());
}

/** Whether loading calls something for its effect, or awaits. */
function actsAtTop({ root, isAwaitingAtTop }: Analysis): boolean {
  return isAwaitingAtTop || (root.node.type === 'Program' && root.node.body.some(isAct));
}

/** Calls that only make exports, or load further modules. */
const quietCalls = /^(?:require|Object\.\w+|Reflect\.\w+|__\w+|_\w+|tslib(?:_\d+)?\.\w+)$/;

function isAct(node: AnyNode): boolean {
  switch (node.type) {
    case 'ExpressionStatement':
      return isActOf(node.expression);
    case 'IfStatement':
      return (
        !asksWhoIsMain(node.test) &&
        (isAct(node.consequent) || (!!node.alternate && isAct(node.alternate)))
      );
    case 'BlockStatement':
      return node.body.some(isAct);
    case 'VariableDeclaration':
      return node.declarations.some(({ init }) => init && startsOne(init));
    case 'ExportNamedDeclaration':
      return !!node.declaration && isAct(node.declaration);
    case 'ExportDefaultDeclaration':
      return startsOne(node.declaration);
    case 'TryStatement':
      return isAct(node.block);
    default:
      return false;
  }
}

function isActOf(node: AnyNode): boolean {
  switch (node.type) {
    case 'CallExpression':
      return !quietCalls.test(nameOf(node.callee));
    case 'ImportExpression':
    case 'AwaitExpression':
    case 'NewExpression':
      return true;
    case 'UnaryExpression':
      return isActOf(node.argument);
    case 'AssignmentExpression':
      return startsOne(node.right);
    case 'LogicalExpression':
      return isActOf(node.right);
    case 'SequenceExpression':
      return node.expressions.some(isActOf);
    default:
      return false;
  }
}

/** `const answer = run(…)`, `export const server = createServer().listen(80)`. */
function startsOne(node: AnyNode | null): boolean {
  switch (node?.type) {
    case 'CallExpression':
      return (
        startingCalls.test(nameOf(node.callee)) ||
        startsOne(node.callee) ||
        node.arguments.some(startsOne)
      );
    case 'MemberExpression':
      return startsOne(node.object);
    case 'ArrayExpression':
      return node.elements.some(startsOne);
    case 'AssignmentExpression':
      return startsOne(node.right);
    default:
      return false;
  }
}

/** Calls whose result a program keeps, and that a host must not repeat. */
const startingCalls = /(?:^|\.)(?:run|pmap(?:\.\w+)?|listen|serve|deploy)$/;

function nameOf(node: AnyNode): string {
  if (node.type === 'Identifier') return node.name;
  if (node.type !== 'MemberExpression' || node.computed) return '';
  return node.property.type === 'Identifier' ? `${nameOf(node.object)}.${node.property.name}` : '';
}

/** `require.main === module`, `import.meta.main`, `process.argv[1] === import.meta.filename`. */
function asksWhoIsMain(node: AnyNode): boolean {
  if (node.type === 'MetaProperty') return true;
  if (nameOf(node) === 'require.main') return true;
  if (node.type === 'BinaryExpression') {
    return asksWhoIsMain(node.left) || asksWhoIsMain(node.right);
  }
  if (node.type === 'MemberExpression') return asksWhoIsMain(node.object);
  if (node.type === 'CallExpression') return node.arguments.some(asksWhoIsMain);
  return false;
}

/** True: the module, or a relative import of it, imports what starts tasks. Metrics and traces do not. */
function reachesUs(url: string, seen: Set<string>): boolean {
  if (seen.has(url) || seen.size > maxModulesRead) return false;
  seen.add(url);
  for (const specifier of analysisOf(url)?.sources ?? []) {
    if (/^manycore(?:\/serve)?$/.test(specifier)) return true;
    const target = resolvedFrom(url, specifier);
    if (target === undefined) continue;
    if (target.startsWith(ownFolder)) {
      if (!target.startsWith(`${ownFolder}observe/`)) return true;
    } else if (reachesUs(target, seen)) return true;
  }
  return false;
}

const maxModulesRead = 200;
/** With this file in a folder of its own, or in a bundle of all. */
const ownFolder = import.meta.url.replace(/(?:context\/)?[^/]*$/, '');

function resolvedFrom(url: string, specifier: string): string | undefined {
  if (specifier.startsWith('file:')) return specifier;
  if (!/^\.{0,2}\//.test(specifier)) return undefined;
  try {
    return pathToFileURL(createRequire(url).resolve(fileURLToPath(new URL(specifier, url)))).href;
  } catch {
    return undefined;
  }
}
