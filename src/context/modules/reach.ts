// The variables of modules that an export reaches: those that its code names, those that the code behind
// these names, and so on, through the imports of modules. Read from the source: values that other modules put
// into a registry are not found.
// Not here: what a call uses (roads.ts).

import { type Outline, outlineOf, type Part } from '../text/outline.js';
import { type Analysis, type Binding, resolve, runsOnce } from '../text/scope.js';
import { isOfUser, isOurs, urlOfModule } from './resolve-module.js';
import { currentAnalysis, scriptsRead } from './scripts.js';

/** Names of variables: `keyOf`. One of a module that cannot be read stands for all of it: `anyOf`. */
export type Reached = ReadonlySet<string>;

export function keyOf(url: string, binding: Binding): string {
  return `${url}:${binding.start}`;
}

export function anyOf(url: string): string {
  return `${url}:*`;
}

/** The export `name` of a module; `*`: all of them, '': any. */
function exportKey(url: string, name: string): string {
  return `${url}#${name}`;
}

const reached = new Map<string, Reached>();
let scriptsThen = -1;

/**
 * The variables that the export `name` of the module at `url` reaches (`*`: all exports, or the one that
 * `member` names). `variable`: the name of another value that the code of the export sees, which is followed
 * instead.
 */
export function reachOf(url: string, name: string, member?: string, variable = ''): Reached {
  // A script that was read since may have another text than its file.
  if (scriptsThen !== scriptsRead()) reached.clear();
  scriptsThen = scriptsRead();
  const key = `${url} ${name} ${member} ${variable}`;
  const known = reached.get(key);
  if (known !== undefined) return known;
  const reach = new Reach();
  if (variable === '') reach.addExport(url, name, { member, isMade: false });
  else reach.addNamed(url, variable.split(' ').at(-1) ?? '');
  reached.set(key, reach.found);
  return reach.found;
}

/** The module in which an export is followed, and the part of the export that is used. */
interface Way {
  readonly url: string;
  readonly outline: Outline;
  /** The property that is used; `undefined`: all. */
  readonly member: string | undefined;
  /** True: a call made it while its module was loaded. */
  readonly isMade: boolean;
}

type Meant = Pick<Way, 'member' | 'isMade'>;

const whole: Meant = { member: undefined, isMade: false };

class Reach {
  readonly found = new Set<string>();
  readonly #seen = new Set<string>();

  addExport(url: string, name: string, { member, isMade }: Meant): void {
    if (!isOfUser(url) || !this.#begin(`${url} ${name} ${member} ${isMade}`)) return;
    const outline = outlineAt(url);
    const isWhole = /^(?:\*|default|module\.exports)$/.test(name);
    this.found.add(exportKey(url, isWhole ? (member ?? name) : name));
    if (outline === undefined) this.found.add(anyOf(url));
    else if (outline.analysis.hasModuleSyntax) {
      this.#addOfModule(name, { url, outline, member, isMade });
    } else this.#addOfCommonJs(isWhole ? member : name, { url, outline, member, isMade });
  }

  /** The variable `name` of the module, of any scope. */
  addNamed(url: string, name: string): void {
    const outline = outlineAt(url);
    if (outline === undefined) this.found.add(anyOf(url));
    for (const { bindings } of outline?.analysis.scopes ?? []) {
      const binding = bindings.get(name);
      if (outline && binding) this.#addBinding(binding, { url, outline, ...whole });
    }
  }

  #begin(key: string): boolean {
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    return true;
  }

  #addOfModule(name: string, way: Way): void {
    const { url, outline, member, isMade } = way;
    if (name === '*' && member !== undefined) {
      this.addExport(url, member, { member: undefined, isMade });
      return;
    }
    for (const each of outline.analysis.exports) {
      if (name !== '*' && each.name !== name) continue;
      const binding = outline.analysis.root.bindings.get(each.local ?? '');
      if (binding !== undefined) this.#addBinding(binding, way);
    }
    for (const [each, parts] of outline.exported) {
      if (name === '*' || each === name) this.#addParts(parts, way);
    }
    let isFound = outline.analysis.exports.some((each) => each.name === name);
    for (const [each, { source, imported }] of outline.reexported) {
      if (name !== '*' && each !== name) continue;
      isFound = true;
      this.#addImport(source, imported, way);
    }
    if (isFound) return;
    for (const source of outline.stars) this.#addImport(source, name, way);
  }

  /** `name`: the property of its exports; `undefined`: all. */
  #addOfCommonJs(name: string | undefined, { url, outline, isMade }: Way): void {
    this.found.add(exportKey(url, ''));
    const way = { url, outline, member: undefined, isMade };
    const parts = outline.exported.get(name ?? '');
    if (parts !== undefined) this.#addParts(parts, way);
    else {
      this.found.add(exportKey(url, '*'));
      const { start, end } = outline.analysis.root.node;
      this.#addPart({ start, end, ...whole }, way);
    }
  }

  #addImport(source: string, name: string, way: Way): void {
    const target = urlOfModule(source, way.url);
    if (target !== undefined) this.addExport(target, name, way);
  }

  #addBinding(binding: Binding, way: Way): void {
    const { url, outline, member, isMade } = way;
    if (!this.#begin(`${keyOf(url, binding)} ${member} ${isMade}`)) return;
    this.found.add(keyOf(url, binding));
    if (binding.kind === 'import') {
      this.#addImport(binding.source ?? '', binding.imported ?? '*', way);
    }
    this.#addParts(outline.parts.get(binding) ?? [], way);
  }

  #addParts(parts: readonly Part[], way: Way): void {
    for (const part of parts) this.#addPart(part, way);
  }

  #addPart({ start, end, ...part }: Part, way: Way): void {
    const { url, outline } = way;
    const isMade = way.isMade || part.isMade;
    const wanted = part.member ?? way.member;
    if (!this.#begin(`${url} ${start} ${end} ${wanted} ${isMade}`)) return;
    for (const use of outline.uses) {
      if (use.start < start || use.start >= end) continue;
      // No use of its own, but another name of it: of the same property.
      const isAll = use.start === start && use.binding?.name.length === end - start;
      const member = use.member ?? (isAll ? wanted : undefined);
      if (use.binding !== undefined)
        this.#addBinding(use.binding, { url, outline, member, isMade });
      else {
        this.addExport(url, '*', { member: member === 'exports' ? undefined : member, isMade });
      }
    }
    for (const load of outline.loads) {
      if (load.start < start || load.start >= end) continue;
      const member = load.start === start ? wanted : undefined;
      this.#addImport(load.source, '*', { url, outline, member, isMade });
    }
    if (isMade) this.#addLocals(outline, url, start, end);
  }

  /** Variables of functions that ran while the module was loaded. */
  #addLocals({ analysis }: Outline, url: string, start: number, end: number): void {
    for (const scope of analysis.scopes) {
      const isWithin = scope.node.start >= start && scope.node.end <= end;
      if (!isWithin || runsOnce(scope, analysis)) continue;
      for (const binding of scope.bindings.values()) this.found.add(keyOf(url, binding));
    }
  }
}

/** Keys of a reach by which code uses the export `name` of a module (`*`: any export). */
export function keysOfExport(url: string, name: string): readonly string[] {
  const keys = [anyOf(url), exportKey(url, '*'), exportKey(url, name === '*' ? '' : name)];
  const found = variableOfExport(url, name);
  if (found !== undefined) keys.push(keyOf(found.url, found.binding));
  return keys;
}

/** The variable that the module at `url` exports, itself or by a re-export. */
function variableOfExport(url: string, name: string): ExportedVariable | undefined {
  const analysis = currentAnalysis(url);
  if (analysis === undefined) return undefined;
  if (analysis.hasModuleSyntax) return variableOf(url, name, new Set());
  const outline = outlineOf(analysis);
  for (const { start, end } of outline.exported.get(name) ?? []) {
    const use = outline.uses.find((each) => each.start === start);
    const binding = use?.binding;
    if (binding !== undefined && binding.name.length === end - start) return { url, binding };
  }
  return undefined;
}

/** A variable that a module exports. */
export interface ExportedVariable {
  readonly url: string;
  readonly binding: Binding;
}

interface FoundVariable extends ExportedVariable {
  readonly analysis: Analysis;
  /** True: `export default name`, which is a value. */
  readonly isValue: boolean;
}

/**
 * The variable that the ES module at `parent` imports; `undefined`: no code assigns it once its module has
 * run.
 */
export function exportedVariable(
  source: string,
  name: string,
  parent: string,
): ExportedVariable | undefined {
  const found = importedVariable(source, name, parent, new Set());
  if (found === undefined || found.isValue) return undefined;
  const { url, binding, analysis } = found;
  return changesLater(binding, analysis) ? { url, binding } : undefined;
}

function importedVariable(
  source: string,
  name: string,
  parent: string,
  seen: Set<string>,
): FoundVariable | undefined {
  const url = urlOfModule(source, parent);
  // This library exports no variable that changes, and is long to parse.
  return url === undefined || isOurs(url) ? undefined : variableOf(url, name, seen);
}

/** The variable that the ES module at `url` exports, of itself or of a module that it imports. */
function variableOf(url: string, name: string, seen: Set<string>): FoundVariable | undefined {
  if (seen.has(`${url} ${name}`)) return undefined;
  seen.add(`${url} ${name}`);
  const analysis = currentAnalysis(url);
  if (analysis === undefined || !analysis.hasModuleSyntax) return undefined;
  const own = analysis.exports.find((each) => each.name === name && each.local !== undefined);
  const binding = analysis.root.bindings.get(own?.local ?? '');
  if (binding?.kind === 'import') {
    return importedVariable(binding.source ?? '', binding.imported ?? '', url, seen);
  }
  if (binding !== undefined) {
    return { url, binding, analysis, isValue: own?.node?.type === 'Identifier' };
  }
  const { reexported, stars } = outlineOf(analysis);
  const from = reexported.get(name);
  if (from !== undefined) return importedVariable(from.source, from.imported, url, seen);
  for (const star of name === 'default' ? [] : stars) {
    const found = importedVariable(star, name, url, seen);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** True: code assigns it that runs after its module, or several times. */
export function changesLater(binding: Binding, analysis: Analysis): boolean {
  if (binding.writes === 0) return false;
  return analysis.references.some(
    ({ isWrite, name, scope }) =>
      isWrite &&
      name === binding.name &&
      resolve(scope, name) === binding &&
      !runsOnce(scope, analysis),
  );
}

function outlineAt(url: string): Outline | undefined {
  const analysis = currentAnalysis(url);
  return analysis && outlineOf(analysis);
}
