// Which variables of modules an export reaches: those that its code names, those that the code behind these
// names, and so on, through what modules import of each other. Read from the source: what other modules
// put into a registry is not seen. Not here: what a call uses (roads.ts).

import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Outline, outlineOf, type Part } from './outline.js';
import { type Analysis, type Binding, resolve, runsOnce } from './scope.js';
import { currentAnalysis, scriptsRead } from './scripts.js';

/** Names a variable: `keyOf`. One of a module that cannot be read stands for all of it: `anyOf`. */
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
 * The variables that the export `name` of the module at `url` reaches (`*`: all exports, or the one that `member`
 * names). `variable`: the name under which the code of the export sees what is meant instead.
 */
export function reachOf(url: string, name: string, member?: string, variable = ''): Reached {
  // A script that was read since may have another text than its file.
  if (scriptsThen !== scriptsRead()) reached.clear();
  scriptsThen = scriptsRead();
  const key = `${url} ${name} ${member} ${variable}`;
  const known = reached.get(key);
  if (known !== undefined) return known;
  const reach = new Reach();
  if (variable === '') reach.addExport(url, name, member, false);
  else reach.addNamed(url, variable.split(' ').at(-1) ?? '');
  reached.set(key, reach.found);
  return reach.found;
}

class Reach {
  readonly found = new Set<string>();
  readonly #seen = new Set<string>();

  addExport(url: string, name: string, member: string | undefined, isMade: boolean): void {
    if (!isOfUser(url) || !this.#begin(`${url} ${name} ${member} ${isMade}`)) return;
    const outline = outlineAt(url);
    const isWhole = /^(?:\*|default|module\.exports)$/.test(name);
    this.found.add(exportKey(url, isWhole ? (member ?? name) : name));
    if (outline === undefined) {
      this.found.add(anyOf(url));
    } else if (outline.analysis.hasModuleSyntax) {
      this.#addOfModule(outline, url, name, member, isMade);
    } else {
      this.#addOfCommonJs(outline, url, name, member, isMade);
    }
  }

  /** The variable `name` of the module, of whatever scope. */
  addNamed(url: string, name: string): void {
    const outline = outlineAt(url);
    if (outline === undefined) this.found.add(anyOf(url));
    for (const { bindings } of outline?.analysis.scopes ?? []) {
      const binding = bindings.get(name);
      if (outline && binding) this.#addBinding(outline, url, binding, undefined, false);
    }
  }

  #begin(key: string): boolean {
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    return true;
  }

  #addOfModule(
    outline: Outline,
    url: string,
    name: string,
    member: string | undefined,
    isMade: boolean,
  ): void {
    if (name === '*' && member !== undefined) {
      this.addExport(url, member, undefined, isMade);
      return;
    }
    for (const each of outline.analysis.exports) {
      if (name !== '*' && each.name !== name) continue;
      const binding = outline.analysis.root.bindings.get(each.local ?? '');
      if (binding !== undefined) this.#addBinding(outline, url, binding, member, isMade);
    }
    for (const [each, parts] of outline.exported) {
      if (name === '*' || each === name) this.#addParts(outline, url, parts, member, isMade);
    }
    let isFound = outline.analysis.exports.some((each) => each.name === name);
    for (const [each, { source, imported }] of outline.reexported) {
      if (name !== '*' && each !== name) continue;
      isFound = true;
      this.#addImport(url, source, imported, member, isMade);
    }
    if (isFound) return;
    for (const source of outline.stars) this.#addImport(url, source, name, member, isMade);
  }

  #addOfCommonJs(
    outline: Outline,
    url: string,
    name: string,
    member: string | undefined,
    isMade: boolean,
  ): void {
    const isWhole = name === '*' || name === 'default' || name === 'module.exports';
    const wanted = isWhole ? member : name;
    this.found.add(exportKey(url, ''));
    const parts = outline.exported.get(wanted ?? '');
    if (parts !== undefined) this.#addParts(outline, url, parts, undefined, isMade);
    else {
      this.found.add(exportKey(url, '*'));
      const { start, end } = outline.analysis.root.node;
      this.#addPart(
        outline,
        url,
        { start, end, isMade: false, member: undefined },
        undefined,
        isMade,
      );
    }
  }

  #addImport(
    url: string,
    source: string,
    name: string,
    member: string | undefined,
    isMade: boolean,
  ): void {
    const target = urlOfModule(source, url);
    if (target !== undefined) this.addExport(target, name, member, isMade);
  }

  #addBinding(
    outline: Outline,
    url: string,
    binding: Binding,
    member: string | undefined,
    isMade: boolean,
  ): void {
    if (!this.#begin(`${keyOf(url, binding)} ${member} ${isMade}`)) return;
    this.found.add(keyOf(url, binding));
    if (binding.kind === 'import') {
      this.#addImport(url, binding.source ?? '', binding.imported ?? '*', member, isMade);
    }
    this.#addParts(outline, url, outline.parts.get(binding) ?? [], member, isMade);
  }

  #addParts(
    outline: Outline,
    url: string,
    parts: readonly Part[],
    member: string | undefined,
    isMade: boolean,
  ): void {
    for (const part of parts) this.#addPart(outline, url, part, member, isMade);
  }

  #addPart(
    outline: Outline,
    url: string,
    part: Part,
    member: string | undefined,
    isMadeAlready: boolean,
  ): void {
    const isMade = isMadeAlready || part.isMade;
    const { start, end } = part;
    const wanted = part.member ?? member;
    if (!this.#begin(`${url} ${start} ${end} ${wanted} ${isMade}`)) return;
    for (const use of outline.uses) {
      if (use.start < start || use.start >= end) continue;
      // What is no more than another name of it: of the same property.
      const isAll = use.start === start && use.binding?.name.length === end - start;
      const property = use.member ?? (isAll ? wanted : undefined);
      if (use.binding !== undefined) {
        this.#addBinding(outline, url, use.binding, property, isMade);
      } else {
        this.addExport(url, '*', property === 'exports' ? undefined : property, isMade);
      }
    }
    for (const load of outline.loads) {
      if (load.start < start || load.start >= end) continue;
      const target = urlOfModule(load.source, url);
      const property = load.start === start ? wanted : undefined;
      if (target !== undefined) this.addExport(target, '*', property, isMade);
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

/** What of a module's reach says that code uses its export `name` (`*`: any export). */
export function keysOfExport(url: string, name: string): readonly string[] {
  const keys = [anyOf(url), exportKey(url, '*'), exportKey(url, name === '*' ? '' : name)];
  const found = variableOfExport(url, name);
  if (found !== undefined) keys.push(keyOf(found.url, found.binding));
  return keys;
}

/** The variable that the module at `url` exports, or a module before it. */
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

/** The variable that the ES module at `parent` imports; `undefined`: nobody assigns it once its module has run. */
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
  return url === undefined ? undefined : variableOf(url, name, seen);
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

/** True: code assigns it that runs after its module, or many times. */
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

/** A URL without what makes Node load the file once more. */
export function bareUrl(url: string): string {
  return url.replace(/[?#].*/, '');
}

/** Packages do not import modules of the program. */
export function isOfUser(url: string): boolean {
  return url.startsWith('file:') && !url.includes('/node_modules/');
}

const targets = new Map<string, string | undefined>();

/** The file that `specifier` means for the module at `parent`; `undefined`: it is of Node, of a package, or not there. */
export function urlOfModule(specifier: string, parent: string): string | undefined {
  const key = `${specifier} ${parent}`;
  if (targets.has(key)) return targets.get(key);
  const target = findModule(specifier, parent);
  const found = target !== undefined && isOfUser(target) ? bareUrl(target) : undefined;
  targets.set(key, found);
  return found;
}

function findModule(specifier: string, parent: string): string | undefined {
  if (specifier.startsWith('file:')) return specifier;
  if (specifier.startsWith('/')) return pathToFileURL(specifier).href;
  if (specifier.startsWith('node:') || !parent.startsWith('file:')) return undefined;
  const { resolve } = createRequire(parent);
  // Compilers write the name of the file that they would make, or leave the extension out.
  const names = [specifier, specifier.replace(/\.([mc]?)js(x?)$/, '.$1ts$2')];
  if (/\.[mc]?tsx?$/.test(bareUrl(parent))) names.push(`${specifier}.ts`, `${specifier}.tsx`);
  for (const name of names) {
    try {
      const isRelative = /^\.{1,2}\//.test(name);
      return pathToFileURL(resolve(isRelative ? fileURLToPath(new URL(name, parent).href) : name))
        .href;
    } catch {
      // The next one.
    }
  }
  return undefined;
}
