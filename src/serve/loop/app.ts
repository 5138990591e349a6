// Loads a program in a loop, as `node PROGRAM` would, and makes a server of its export when it does not
// listen by itself: a request listener, a server, a framework's instance, a `fetch` handler.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createSecureServer } from 'node:http2';
import { createRequire, runMain } from 'node:module';
import { Server } from 'node:net';
import { dirname, extname, join } from 'node:path';
import { createSecureContext, type Server as TlsServer } from 'node:tls';
import { pathToFileURL } from 'node:url';
import { CodedError } from '../../errors.js';
import { messageOf, nodeHttp, nodeHttps } from '../../lib/index.js';
import type { AppSettings, TlsFiles } from '../tickets.js';
import { fetchListener } from './fetch.js';
import { importMain } from './main-module.js';

/** Runs the program; resolves with its exports, once it is loaded. */
export async function loadApp({ path, args }: AppSettings): Promise<unknown> {
  if (!existsSync(path)) throw new CodedError('SERVE_START_FAILED', `there is no program ${path}`);
  process.argv.splice(1, process.argv.length - 1, path, ...args);
  try {
    return await runApp(path);
  } catch (error) {
    if (error instanceof SyntaxError) addPlace(error, path);
    throw error;
  }
}

/**
 * Adds the location of a syntax error: the stack of an ES module that cannot be parsed names no file, but
 * `node --check` does for the program's own file. Leaves the error unchanged when that fails.
 */
function addPlace(error: SyntaxError, path: string): void {
  try {
    const options = { encoding: 'utf8', timeout: checkLimitMs } as const;
    const { stderr } = spawnSync(process.execPath, ['--check', path], options);
    const [place = ''] = (stderr ?? '').split('\n', 1);
    if (!place.includes(path)) return;
    error.message = `${error.message} at ${place}`;
    error.stack = stderr.replace(/\s+Node\.js v[^]*$/, '');
  } catch {
    // Starting programs is not permitted.
  }
}

const checkLimitMs = 5000;

async function runApp(path: string): Promise<unknown> {
  if (isModule(path)) return await importMain(path);
  runMain(); // so that `require.main === module` holds
  const exported: unknown = createRequire(path).cache[realpathSync(path)]?.exports;
  // An ES module without the name or package type of one: Node detects it, and runs it by itself.
  const isUnmarked = extname(path) !== '.cjs' && isEmpty(exported) && hasModuleSyntax(path);
  return isUnmarked ? await import(pathToFileURL(path).href) : exported;
}

function isEmpty(exported: unknown): boolean {
  return typeof exported !== 'function' && Object.keys(Object(exported)).length === 0;
}

function hasModuleSyntax(path: string): boolean {
  return /^\s*(import|export)\b/m.test(readFileSync(path, 'utf8'));
}

/** True: Node loads the file as an ES module. Files that it cannot run are for Node to refuse. */
function isModule(path: string): boolean {
  const extension = extname(path);
  if (extension === '.mjs' || extension === '.mts') return true;
  if (extension === '.cjs' || extension === '.cts') return false;
  return typeOfPackage(dirname(path)) === 'module';
}

/** `type` of the nearest package.json. */
function typeOfPackage(folder: string): unknown {
  for (let at = folder; ; at = dirname(at)) {
    try {
      const manifest: unknown = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8'));
      return Reflect.get(Object(manifest), 'type');
    } catch {
      if (at === dirname(at)) return undefined;
    }
  }
}

/** Rejects options that would have no effect: a server must not lack TLS unnoticed. */
export function refuseUnused({ tls, unix, host }: AppSettings): void {
  const unused = (tls && 'tls') ?? (unix && 'unix') ?? (host && 'host');
  if (unused === undefined) return;
  throw new CodedError(
    'OPTION_INVALID',
    `${unused} is for programs that export their app; this one listens by itself: ` +
      'leave the option out, and let the program do it',
  );
}

/**
 * Listens with the program's export; returns false when that cannot listen. `onFailed` gets the error of a
 * server that fails to.
 */
export function listenWith(
  exported: unknown,
  settings: AppSettings,
  onFailed: (error: unknown) => void,
): boolean {
  const app = defaultOf(exported);
  const { port, host, unix, tls } = settings;
  const tcp = { port, ...(host !== undefined && { host }) };
  const options = unix === undefined ? tcp : { path: unix };
  if (tls !== undefined) {
    orFail(secureServer(app, tls).listen(options), onFailed);
    return true;
  }
  // A server, and the instances of Express, Fastify, Koa, Connect, Polka.
  const listen = methodOf(app, 'listen');
  if (listen !== undefined) {
    orFail(Reflect.apply(listen, app, [options]), onFailed);
    return true;
  }
  const listener = listenerOf(app);
  if (listener === undefined) return false;
  orFail(nodeHttp().createServer(listener).listen(options), onFailed);
  return true;
}

/** Watches a server (or Fastify's promise of one) that begins to listen, unless it handles its errors. */
function orFail(listening: unknown, onFailed: (error: unknown) => void): void {
  if (listening instanceof Promise) listening.catch(onFailed);
  if (!(listening instanceof Server) || listening.listenerCount('error') > 0) return;
  listening.once('error', onFailed);
  listening.once('listening', () => listening.off('error', onFailed));
}

/** Reads the files in each loop at its start, so that a reload takes new certificates. */
function secureServer(app: unknown, { http2, names, ...own }: TlsFiles): Server {
  const listener = listenerOf(app);
  if (listener === undefined) {
    throw new CodedError(
      'OPTION_INVALID',
      'tls is for programs that export a request listener, a fetch handler, or an app of Express, Hono or Koa: this one has to make its secure server itself',
    );
  }
  const options = readCertificate(own);
  const server: TlsServer = http2
    ? // Requests and responses have the interface of HTTP/1 for listeners.
      createSecureServer({ ...options, allowHTTP1: true }).on('request', listener)
    : nodeHttps().createServer(options, listener);
  // Node takes the last one that matches: exact names come behind those with a star.
  const stars = names.filter(({ name }) => name.startsWith('*'));
  const exact = names.filter(({ name }) => !name.startsWith('*'));
  for (const { name, ...files } of [...stars, ...exact]) {
    server.addContext(name, readCertificate(files));
  }
  return server;
}

/** Throws `SERVE_START_FAILED` for files that cannot be used. */
function readCertificate({ cert, key }: Pick<TlsFiles, 'cert' | 'key'>) {
  try {
    const read = { cert: readFileSync(cert), key: readFileSync(key) };
    createSecureContext(read);
    return read;
  } catch (cause) {
    const message = `the certificate ${cert} with the key ${key} cannot be used: ${messageOf(cause)}`;
    throw new CodedError('SERVE_START_FAILED', message, { cause });
  }
}

/** Accepts a listener, an app of Express or Koa, or an object with a `fetch` method, as of Hono. */
function listenerOf(app: unknown): RequestListener | undefined {
  const fetch = methodOf(app, 'fetch');
  if (fetch !== undefined) return fetchListener((request) => Reflect.apply(fetch, app, [request]));
  if (isListener(app)) return app;
  const callback = methodOf(app, 'callback');
  const made: unknown = callback && Reflect.apply(callback, app, []);
  return isListener(made) ? made : undefined;
}

/** The default export, or all exports of a CommonJS module. */
function defaultOf(exported: unknown): unknown {
  if (typeof exported !== 'object' || exported === null || !('default' in exported))
    return exported;
  return exported.default;
}

type AnyFunction = (...args: unknown[]) => unknown;

function methodOf(value: unknown, name: string): AnyFunction | undefined {
  const hasMembers = (typeof value === 'object' && value !== null) || typeof value === 'function';
  if (!hasMembers) return undefined;
  const member: unknown = Reflect.get(value, name);
  return isFunction(member) ? member : undefined;
}

function isFunction(value: unknown): value is AnyFunction {
  return typeof value === 'function';
}

function isListener(value: unknown): value is RequestListener {
  return typeof value === 'function' && !/^class\b/.test(Function.prototype.toString.call(value));
}
