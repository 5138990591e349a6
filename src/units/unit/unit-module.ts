// Loads modules of units in a loop, each in the version of its deployment. Node keeps a module under its URL for
// ever: after an edit it is loaded once more under a URL with its version as a query, and so are those of its
// imports that differ. The others stay as they are, with their state. CommonJS modules lose their place in the
// cache of `require`. The first version of a file has no query.
// Not here: versions (context/modules/code-version.ts), the version that a deployment has (director/).

import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';
import * as types from 'node:util/types';
import { bareUrl, codeVersions } from '../../context/index.js';
import { CodedError } from '../../errors.js';
import { messageOf } from '../../lib/index.js';
import { versionChanged } from '../errors.js';
import { versionMark } from '../protocol.js';
import { syntaxPlace } from './syntax-place.js';

const require = nodeModule.createRequire(import.meta.url);
const registerHooks: unknown = Reflect.get(nodeModule, 'registerHooks');

/** By URL: the version that this thread has under the URL without a query. */
const firsts = new Map<string, string>();
/** By URL: the version that was loaded last. */
const latest = new Map<string, string>();
/** By URL with a query: the URLs of the modules that it imports in the end, by those without a query. */
const graphs = new Map<string, ReadonlyMap<string, string>>();
/** By URL and version. */
const loaded = new Map<string, Promise<unknown>>();
let isHooked = false;

export interface UnitModule {
  readonly exports: unknown;
  readonly version: string;
}

/**
 * Loads the module at `url` in this version, or, unless `isStrict`, in the one that the file has now. Rejects with
 * `UNIT_VERSION_CHANGED`, and with `UNIT_INVALID` when it cannot be loaded.
 */
export async function loadUnit(
  url: string,
  version: string,
  isStrict: boolean,
): Promise<UnitModule> {
  const before = loaded.get(`${url} ${version}`);
  if (before !== undefined) return { exports: await before, version };
  const versions = codeVersions(url);
  const found = versions.get(url) ?? version; // a file that is gone fails below
  if (found !== version && isStrict) throw versionChanged(fileURLToPath(url), version, found);
  const key = `${url} ${found}`;
  const loading = loaded.get(key) ?? load(url, versions);
  loaded.set(key, loading);
  loading.catch(() => loaded.delete(key));
  return { exports: await loading, version: found };
}

async function load(url: string, versions: ReadonlyMap<string, string>): Promise<unknown> {
  const path = fileURLToPath(url);
  try {
    const href = prepare(url, versions);
    return path.endsWith('.cjs') ? require(path) : await import(href);
  } catch (cause) {
    if (cause instanceof CodedError) throw cause;
    const place = syntaxPlace(cause, versions.keys());
    const where = place === undefined ? '' : `, at ${place}`;
    const message = `${path} cannot be loaded: ${messageOf(cause)}${where}`;
    throw new CodedError('UNIT_INVALID', message, { cause });
  }
}

/** Makes room for these versions; returns the URL to import. Throws `UNIT_INVALID`: then nothing has changed. */
function prepare(url: string, versions: ReadonlyMap<string, string>): string {
  const hrefs = new Map<string, string>();
  for (const [file, version] of versions) {
    const first = firsts.get(file) ?? version;
    hrefs.set(file, first === version ? file : `${file}?${versionMark}=${version}`);
    if (first !== version) checkReloadable(file, url);
  }
  for (const [file, version] of versions) {
    if (!firsts.has(file)) firsts.set(file, version);
    if ((latest.get(file) ?? version) !== version) delete require.cache[fileURLToPath(file)];
    latest.set(file, version);
  }
  for (const href of hrefs.values()) {
    if (href.includes('?') && !graphs.has(href)) graphs.set(href, hrefs);
  }
  if (graphs.size > 0) hook();
  return hrefs.get(url) ?? url;
}

/** Throws for an imported ES module that this Node can only load once. */
function checkReloadable(file: string, unit: string): void {
  const cached = require.cache[fileURLToPath(file)];
  const isRequired = types.isModuleNamespaceObject(cached?.exports);
  if (cached !== undefined && !isRequired) return; // CommonJS
  if (!isRequired && (file === unit || typeof registerHooks === 'function')) return;
  const what = isRequired
    ? 'an ES module that CommonJS requires'
    : `an imported ES module, with Node ${process.versions.node}`;
  const way = isRequired ? 'import it' : 'use Node 22.15 or later';
  throw new CodedError(
    'UNIT_INVALID',
    `${fileURLToPath(file)} was edited, and a loop loads ${what}, only once: ${way}, or start the program again`,
  );
}

function hook(): void {
  if (isHooked || typeof registerHooks !== 'function') return;
  isHooked = true;
  Reflect.apply(registerHooks, nodeModule, [{ resolve: resolveAnew }]);
}

interface Resolved {
  readonly url: string;
}

/** Imports of a module with a query lead to those that were loaded along with it. */
function resolveAnew(
  specifier: string,
  context: { readonly parentURL?: string },
  next: (specifier: string, context: unknown) => Resolved,
): Resolved {
  const found = next(specifier, context);
  const href = graphs.get(context.parentURL ?? '')?.get(bareUrl(found.url));
  return href === undefined ? found : { ...found, url: href };
}
