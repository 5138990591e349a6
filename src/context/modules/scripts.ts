// Resolves a function's place (script id, line, column) to its module: URL, source, declarations of its
// variables. All of it is cached by script: a module is parsed once, at the first function of it that is
// sent.
// Not here: capture (inspector.ts), naming exports for a peer (references.ts).

import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';
import * as util from 'node:util';
import { CodedError } from '../../errors.js';
import { withoutWarnings } from '../../lib/index.js';
import { type FunctionLocation, inspectSelf, type RunningSource } from '../closures/inspector.js';
import { parse } from '../text/parser.js';
import { type Analysis, analyse, type Binding, resolve, type Scope } from '../text/scope.js';
import { hasInlineMap } from '../toolchains/source-maps.js';
import { fileText, readFile } from './file-text.js';
import { copyPrefix } from './marks.js';
import { bareUrl } from './resolve-module.js';

export interface Script {
  /** `file:`, `node:`, `data:` URL, or the bare path of a CommonJS module made into a URL; may be ''. */
  readonly url: string;
  /** The name of the script in V8's stacks: for CommonJS a path. */
  readonly name: string;
  readonly isCommonJs: boolean;
  /** An ES module, whose code is strict. */
  readonly isModule: boolean;
  readonly source: string | undefined;
  readonly lineStarts: readonly number[];
  /** `undefined` when there is no source, or it does not parse. */
  readonly analysis: Analysis | undefined;
  /** The scopes around functions, by their start: found once. */
  readonly around: Map<number, Scope>;
}

/** A function's text in its module: zero-based place of the first character. */
export interface Place {
  readonly script: Script;
  readonly line: number;
  readonly column: number;
  /** Offset of the text in `script.source`; -1 when it was not found there. */
  readonly start: number;
}

const require = nodeModule.createRequire(import.meta.url);
const urls = new Map<string, string>();
const scripts = new Map<string, Script>();

/** Notes the name of the script of a function, where it was read natively: the inspector takes 5-15 ms. */
export function noteScriptName(scriptId: string, name: () => string | null): void {
  if (urls.has(scriptId)) return;
  const found = name();
  if (found !== null) urls.set(scriptId, found);
}

/** The URL V8 has for a script: '' for code without one. */
export function scriptUrl(scriptId: string): string {
  const known = urls.get(scriptId);
  if (known !== undefined) return known;
  for (const [id, url] of onStack()) urls.set(id, url);
  if (!urls.has(scriptId)) {
    for (const [id, url] of inspectSelf().scriptUrls()) urls.set(id, url);
  }
  if (!urls.has(scriptId)) {
    for (const [id, url] of inspectSelf().allScriptUrls()) urls.set(id, url);
  }
  const found = urls.get(scriptId) ?? '';
  urls.set(scriptId, found);
  return found;
}

/** Scripts of the frames that run now: a callback's module is nearly always among them. */
function onStack(): [string, string][] {
  const get: unknown = Reflect.get(util, 'getCallSites');
  if (typeof get !== 'function') return [];
  const sites: unknown = Reflect.apply(get, util, [50]);
  if (!Array.isArray(sites)) return [];
  return sites.flatMap((site: unknown): [string, string][] => {
    if (typeof site !== 'object' || site === null) return [];
    if (!('scriptId' in site && 'scriptName' in site)) return [];
    const { scriptId, scriptName } = site;
    return typeof scriptId === 'string' && typeof scriptName === 'string' && scriptName !== ''
      ? [[scriptId, scriptName]]
      : [];
  });
}

/** The place of the function with this `text` and V8 location. */
export function placeOf(text: string, anchor: number, at: FunctionLocation): Place {
  const script = scriptAt(at, text);
  const { lineStarts, source } = script;
  const start = source === undefined ? -1 : startOf(source, lineStarts, text, at);
  if (start >= 0 && at.line > 0) return { script, start, ...lineAndColumn(lineStarts, start) };
  const before = text.slice(0, anchor);
  const breaks = before.split('\n').length - 1;
  const column = breaks === 0 ? Math.max(0, at.column - anchor) : 0;
  return { script, start, line: Math.max(0, at.line - breaks), column };
}

/** The offset of `text` in `source`; -1: it is not there. */
function startOf(
  source: string,
  lineStarts: readonly number[],
  text: string,
  { line, column }: FunctionLocation,
): number {
  const offset = (lineStarts[line] ?? Number.NaN) + column;
  const start = source.lastIndexOf(text, offset);
  if (start >= 0 && start + text.length > offset) return start;
  // Columns of the first line leave out the head of a function that a tool has put around a module.
  const only = line === 0 ? source.indexOf(text) : -1;
  const isFirst = only === source.lastIndexOf(text, lineStarts[1] ?? source.length);
  return isFirst && only < (lineStarts[1] ?? source.length) ? only : -1;
}

function lineAndColumn(lineStarts: readonly number[], offset: number) {
  let low = 0;
  let high = lineStarts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((lineStarts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return { line: low, column: offset - (lineStarts[low] ?? 0) };
}

/** Zero-based line and column of an offset in the source of a script. */
export function placeAt(script: Script, offset: number): { line: number; column: number } {
  return lineAndColumn(script.lineStarts, offset);
}

function scriptAt(at: FunctionLocation, text: string): Script {
  const known = scripts.get(at.scriptId);
  if (known !== undefined) return known;
  const name = nameAt(at);
  const script = readScript(at, name, urlOfName(name), text);
  scripts.set(at.scriptId, script);
  return script;
}

/** The URL of a script, without reading it. */
export function scriptUrlAt(at: FunctionLocation): string {
  return scripts.get(at.scriptId)?.url ?? urlOfName(nameAt(at));
}

/** The name that V8 has for a script. */
function nameAt(at: FunctionLocation): string {
  const running = scriptUrl(at.scriptId);
  return running.startsWith(copyPrefix) ? running.slice(copyPrefix.length) : running;
}

function urlOfName(name: string): string {
  return name.startsWith('/') ? pathToUrl(name) : name;
}

/** The text of the script that V8 calls `name`, where a function of it was sent. */
export function runningText(name: string): string | undefined {
  let found: string | undefined;
  for (const { name: each, source } of scripts.values()) {
    if (each !== name || source === undefined) continue;
    if (hasInlineMap(source)) return source;
    found ??= source; // of a function that a worker made, where there is another
  }
  return found;
}

function pathToUrl(path: string): string {
  return new URL(`file://${path.split('/').map(encodeURIComponent).join('/')}`).href;
}

function readScript(at: FunctionLocation, name: string, url: string, text: string): Script {
  const path = url.startsWith('file:') ? fileURLToPath(url) : name;
  const mayBeCommonJs = name.endsWith('.cjs') || path in require.cache;
  // The name in V8's stacks: a path for CommonJS, else the URL.
  const as = (isCommonJs: boolean, isModule: boolean) => ({
    url,
    name: isCommonJs ? path : name,
    isCommonJs,
    isModule,
  });
  // V8 names ES modules by their URL; CommonJS by a path, and code of eval, -e and vm by other names.
  const mayBeModule = !mayBeCommonJs && URL.canParse(name);
  const around = new Map<number, Scope>();
  const nothing = { source: undefined, lineStarts: [], analysis: undefined, around };
  const none = { ...as(mayBeCommonJs, mayBeModule), ...nothing };
  if (url.startsWith('node:')) return none;
  for (const { text: source, linesAbove } of sourcesOf(at.scriptId, url)) {
    const lineStarts = startsOfLines(source).slice(linesAbove);
    if (startOf(source, lineStarts, text, at) < 0) continue;
    const analysis = parseModule(source);
    if (analysis === undefined) continue;
    // ES modules that were required are in the cache as well.
    const isCommonJs = mayBeCommonJs && !analysis.hasModuleSyntax;
    const isModule = analysis.hasModuleSyntax || mayBeModule;
    return { ...as(isCommonJs, isModule), source, lineStarts, analysis, around };
  }
  return none;
}

/**
 * Candidates for the source, cheapest first: the file, the file without types, the text that V8 really runs.
 */
function* sourcesOf(scriptId: string, url: string): Generator<RunningSource> {
  const file = readFile(url);
  if (file !== undefined) {
    yield { text: file, linesAbove: 0 };
    const stripped = /\.[mc]?ts(\?|$)/.test(url) ? stripTypes(file) : undefined;
    if (stripped !== undefined) yield { text: stripped, linesAbove: 0 };
  }
  const running = runningSource(scriptId);
  if (running !== undefined) yield running;
}

/** Sources without a file that were read along with another: each is used once. */
const readAlong = new Map<string, RunningSource>();
const maxReadAlong = 2000;

/**
 * The text that V8 runs for a script. Reads other scripts without a file as well, because one costs as much.
 */
function runningSource(scriptId: string): RunningSource | undefined {
  const known = readAlong.get(scriptId);
  readAlong.delete(scriptId);
  if (known !== undefined) return known;
  readAlong.clear();
  const others = [...urls].flatMap(([id, url]) => (url === '' && !scripts.has(id) ? [id] : []));
  const wanted = [scriptId, ...others.filter((id) => id !== scriptId).slice(-maxReadAlong)];
  for (const [id, source] of inspectSelf().scriptSources(wanted)) readAlong.set(id, source);
  const source = readAlong.get(scriptId);
  readAlong.delete(scriptId);
  return source;
}

function stripTypes(source: string): string | undefined {
  const strip: unknown = Reflect.get(nodeModule, 'stripTypeScriptTypes');
  if (typeof strip !== 'function') return undefined;
  return withoutWarnings(() => {
    try {
      const stripped: unknown = Reflect.apply(strip, nodeModule, [source]);
      return typeof stripped === 'string' ? stripped : undefined;
    } catch {
      return undefined; // syntax that needs more than stripping
    }
  });
}

function startsOfLines(source: string): number[] {
  const starts = [0];
  for (let at = source.indexOf('\n'); at >= 0; at = source.indexOf('\n', at + 1)) {
    starts.push(at + 1);
  }
  return starts;
}

function parseModule(source: string): Analysis | undefined {
  for (const sourceType of ['module', 'script'] as const) {
    try {
      return analyse(
        parse(source, {
          ecmaVersion: 'latest',
          sourceType,
          allowReturnOutsideFunction: true,
          allowHashBang: true,
        }),
      );
    } catch (error) {
      if (error instanceof CodedError) throw error; // there is no parser
      // not of this type
    }
  }
  return undefined;
}

const analyses = new Map<string, Analysis | undefined>();

/** The analysis of the file at `url`; `undefined`: unreadable, large, or not JavaScript. */
export function analysisOf(url: string): Analysis | undefined {
  if (analyses.has(url)) return analyses.get(url);
  const file = fileText(url);
  const source = file !== undefined && /\.[mc]?ts$/.test(url) ? stripTypes(file) : file;
  const analysis = source === undefined ? undefined : parseModule(source);
  analyses.set(url, analysis);
  return analysis;
}

/** The same, as V8 runs it where a function of it was sent. `url`: without a query. */
export function currentAnalysis(url: string): Analysis | undefined {
  for (const script of scripts.values()) {
    if (script.analysis !== undefined && bareUrl(script.url) === url) {
      return script.analysis;
    }
  }
  return analysisOf(url);
}

/** A counter: while it is the same, so is the analysis of each module. */
export function scriptsRead(): number {
  return scripts.size;
}

/** The scope in which the function at `place` was written. */
export function scopeAround(place: Place): Scope | undefined {
  const { analysis } = place.script;
  if (analysis === undefined || place.start < 0) return undefined;
  const known = place.script.around.get(place.start);
  if (known !== undefined) return known;
  const node = analysis.functions.find(({ start }) => start === place.start);
  let innermost: Scope = analysis.root;
  for (const scope of analysis.scopes) {
    if (scope.node === node && scope.field === undefined) continue;
    const holds = scope.node.start <= place.start && scope.node.end > place.start;
    if (holds && isNarrower(scope, innermost)) innermost = scope;
  }
  place.script.around.set(place.start, innermost);
  return innermost;
}

function isNarrower(a: Scope, b: Scope): boolean {
  return a.node.end - a.node.start <= b.node.end - b.node.start;
}

/** True: the code around the function at `place` is strict. */
export function isStrictAt(place: Place): boolean {
  return place.script.isModule || scopeAround(place)?.isStrict === true;
}

/** The declaration that `name` means for the function at `place`. */
export function bindingAt(place: Place, name: string): Binding | undefined {
  const scope = scopeAround(place);
  return scope && resolve(scope, name);
}
