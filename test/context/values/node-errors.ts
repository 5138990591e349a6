// Functions that provoke errors of Node and of the language, one of each kind. Each error has the same text
// at every throw.

import assert from 'node:assert/strict';
import { execFileSync, execSync } from 'node:child_process';
import crypto from 'node:crypto';
import dgram from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { EventEmitter, once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import querystring from 'node:querystring';
import { Readable, Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as sleep } from 'node:timers/promises';
import url from 'node:url';
import util from 'node:util';
import v8 from 'node:v8';
import vm from 'node:vm';
import { Worker } from 'node:worker_threads';
import zlib from 'node:zlib';

/** Arguments of a wrong type. */
const wrong = JSON.parse('{"number":5,"object":{},"text":"nope"}');
const require = createRequire(import.meta.url);
/** The declarations of WebAssembly are those of browsers. */
const wasm = Reflect.get(globalThis, 'WebAssembly');
const nowhere = '/does/not/exist';
const aborted = (reason?: unknown) => ({ signal: AbortSignal.abort(reason) });
const quiet = { stdio: 'pipe' } as const;
const bytes = (text: string) => Buffer.from(text);

export const nodeErrors: Readonly<Record<string, () => unknown>> = {
  // codes of Node: a class of its own for each
  ERR_INVALID_ARG_TYPE: () => fs.readFileSync(wrong.object),
  ERR_OUT_OF_RANGE: () => Buffer.alloc(4).readUInt8(9),
  'ERR_OUT_OF_RANGE without frames': () => Buffer.alloc(-1),
  ERR_INVALID_ARG_VALUE: () => zlib.createGzip({ level: 99 }),
  ERR_INVALID_URL: () => new URL('nope'),
  'ERR_INVALID_URL with a base': () => new URL('/x', 'nope'),
  ERR_INVALID_URL_SCHEME: () => url.fileURLToPath('http://x/y'),
  ERR_INVALID_FILE_URL_HOST: () => url.fileURLToPath('file://host/y'),
  ERR_INVALID_URI: () => querystring.stringify({ a: '\ud800' }),
  ERR_INVALID_THIS: () => ReadableStream.prototype.getReader.call(wrong.object),
  ERR_ILLEGAL_CONSTRUCTOR: () => Reflect.construct(ReadableStreamDefaultController, []),
  ERR_INVALID_STATE: () => {
    const stream = new ReadableStream();
    stream.getReader();
    stream.getReader();
  },
  'ERR_INVALID_STATE, rejected': () => {
    const stream = new ReadableStream();
    stream.getReader();
    return stream.cancel();
  },
  ERR_MISSING_ARGS: () => Reflect.construct(Event, []),
  ERR_UNKNOWN_ENCODING: () => new StringDecoder(wrong.text),
  ERR_UNKNOWN_SIGNAL: () => process.kill(process.pid, 'SIGNOPE'),
  ERR_SOCKET_BAD_TYPE: () => dgram.createSocket(wrong.text),
  ERR_SOCKET_BAD_PORT: () => net.connect(99_999),
  ERR_UNESCAPED_CHARACTERS: () => http.request({ path: '/a b' }),
  ERR_INVALID_HTTP_TOKEN: () => new http.OutgoingMessage().setHeader('a b', 'c'),
  ERR_STREAM_WRITE_AFTER_END: async () => {
    const stream = new Writable({ write: (_chunk, _encoding, done) => done() });
    stream.end();
    const failed = once(stream, 'error');
    stream.write('x');
    throw (await failed)[0];
  },
  ERR_METHOD_NOT_IMPLEMENTED: async () => {
    const stream = new Readable();
    stream.read();
    throw (await once(stream, 'error'))[0];
  },
  ERR_UNHANDLED_ERROR: () => new EventEmitter().emit('error', 5),
  ERR_FALSY_VALUE_REJECTION: () =>
    new Promise((_resolve, reject) => {
      util.callbackify(() => Promise.reject(null))(reject);
    }),
  ERR_PARSE_ARGS_UNKNOWN_OPTION: () => util.parseArgs({ args: ['--nope'] }),
  ERR_PARSE_ARGS_INVALID_OPTION_VALUE: () =>
    util.parseArgs({ args: ['--a'], options: { a: { type: 'string' } } }),
  ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL: () => util.parseArgs({ args: ['x'] }),
  ERR_ENCODING_INVALID_ENCODED_DATA: () =>
    new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.of(255)),
  ERR_ENCODING_NOT_SUPPORTED: () => new TextDecoder('nope'),
  ERR_INVALID_TUPLE: () => new URLSearchParams([['a']] as never),
  ERR_BUFFER_TOO_LARGE: () =>
    zlib.inflateSync(zlib.deflateSync(Buffer.alloc(1000)), { maxOutputLength: 10 }),
  ERR_WORKER_PATH: () => new Worker('nope.js'),
  ERR_INVALID_IP_ADDRESS: () => new Resolver().setServers(['nope']),
  ERR_MODULE_NOT_FOUND: () => import(nowhere),
  'ERR_MODULE_NOT_FOUND of a package': () => import(`${'does-not'}-exist`),
  ERR_UNSUPPORTED_ESM_URL_SCHEME: () => import(`${'nope'}:x`),
  MODULE_NOT_FOUND: () => require(`${'does-not'}-exist`),
  // calls to the system
  ERR_FS_EISDIR: () => fs.rmSync(os.tmpdir()),
  ERR_FS_CP_EINVAL: () => fs.cpSync(os.tmpdir(), path.join(os.tmpdir(), 'below')),
  ERR_SYSTEM_ERROR: () => os.getPriority(2 ** 30),
  ENOENT: () => fs.readFileSync(nowhere),
  'ENOENT with two paths': () => fs.renameSync(nowhere, '/nor/this'),
  'ENOENT, rejected': () => fs.promises.readFile(nowhere),
  EEXIST: () => fs.mkdirSync(os.tmpdir()),
  EBADF: () => fs.closeSync(99_999),
  ESRCH: () => process.kill(2 ** 30, 0),
  ECONNREFUSED: () => once(net.connect(1, '127.0.0.1'), 'connect'),
  'ENOENT of a program': () => execFileSync(nowhere, ['a']),
  'status and output of a program': () =>
    execFileSync('sh', ['-c', 'echo out; echo err >&2; exit 3'], quiet),
  'output as text': () =>
    execFileSync('sh', ['-c', 'echo out; exit 3'], { ...quiet, encoding: 'utf8' }),
  'status of a shell': () => execSync('exit 4', quiet),
  // aborts
  ABORT_ERR: () => sleep(1000, undefined, aborted()),
  'ABORT_ERR with a reason': () => sleep(1000, undefined, aborted(new RangeError('why'))),
  'ABORT_ERR of fs': () => fs.promises.readFile(nowhere, aborted()),
  'ABORT_ERR of an event': () => once(new EventEmitter(), 'x', aborted()),
  AbortError: () => aborted().signal.throwIfAborted(),
  'an own reason': () => aborted(new RangeError('own')).signal.throwIfAborted(),
  // of the web
  'DOMException of Node': () => structuredClone(() => {}),
  'DOMException of atob': () => atob('***'),
  'DOMException of performance': () => performance.measure('a', 'b-missing'),
  'DOMException of webcrypto': () => crypto.subtle.digest('nope', Buffer.alloc(1)),
  'own DOMException': () => {
    throw Object.assign(new DOMException('own', 'DataError'), { extra: 1 });
  },
  'fetch of no URL': () => fetch('nope'),
  'fetch of no server': () => fetch('http://127.0.0.1:1'),
  Headers: () => new Headers([['a']] as never),
  Response: () => new Response(null, { status: 1 }),
  'JSON of a response': () => new Response('{').json(),
  'WebAssembly.CompileError': () => new wasm.Module(bytes('nope')),
  'WebAssembly.RuntimeError': () => {
    throw new wasm.RuntimeError('own');
  },
  // assertions
  'assert.equal': () => assert.equal(1, 2),
  'assert.deepEqual': () => assert.deepEqual({ a: [1, 2] }, { a: [1, 3] }),
  'assert.deepEqual of Maps': () => assert.deepEqual(new Map([[1, 'a']]), new Map([[1, 'b']])),
  'assert.ok with a text': () => assert.ok(false, 'own text'),
  'assert.throws': () => assert.throws(() => {}),
  'assert.match': () => assert.match('a', /b/),
  'assert.ifError': () => assert.ifError(new Error('inner')),
  AssertionError: () => {
    throw new assert.AssertionError({ actual: 1, expected: 2, operator: 'own' });
  },
  // crypto and zlib
  ERR_CRYPTO_INVALID_DIGEST: () => crypto.sign('nope', bytes('a'), 'b'),
  'a key that is none': () => crypto.createPrivateKey('nope'),
  'a hash that is none': () => crypto.createHash('nope'),
  'a wrong key length': () => crypto.createCipheriv('aes-128-cbc', 'short', 'iv'),
  'a wrong block': () => {
    const decipher = crypto.createDecipheriv('aes-128-cbc', Buffer.alloc(16), Buffer.alloc(16));
    decipher.update(Buffer.alloc(16));
    decipher.final();
  },
  'a wrong PEM': () =>
    crypto.createPublicKey('-----BEGIN PUBLIC KEY-----\nMFww\n-----END PUBLIC KEY-----'),
  ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH: () =>
    crypto.timingSafeEqual(Buffer.alloc(1), Buffer.alloc(2)),
  Z_DATA_ERROR: () => zlib.gunzipSync(bytes('nope nope nope')),
  'Z_DATA_ERROR, rejected': () => util.promisify(zlib.gunzip)(bytes('nope nope')),
  ERR__ERROR_FORMAT_PADDING_1: () => zlib.brotliDecompressSync(bytes('nope')),
  // the language
  'JSON.parse': () => JSON.parse('{"a": }'),
  'new Function': () => new Function('return ]'),
  'a syntax error of a module': () => import(`${'data:text/javascript,'}let a; let a`),
  'a missing export': () => import(`${'data:text/javascript,'}import { nope } from "node:fs"`),
  'stack overflow': () => {
    const deeper = (): number => deeper() + 1;
    return deeper();
  },
  'a property of null': () => wrong.missing.value,
  'a name without a value': () => vm.runInThisContext('missingName'),
  'new Array': () => new Array(-1),
  'a date without a time': () => new Date(Number.NaN).toISOString(),
  decodeURIComponent: () => decodeURIComponent('%'),
  'a serializer': () => v8.serialize(() => {}),
  'a wrong serialization': () => v8.deserialize(Buffer.from([1, 2])),
  AggregateError: () => {
    throw new AggregateError([new TypeError('a'), 'b', new RangeError('c')], 'all');
  },
  'a cause of Node': () => {
    const buffers: Error[] = [];
    try {
      Buffer.alloc(-1);
    } catch (error) {
      if (error instanceof Error) buffers.push(error);
    }
    throw new Error('outer', { cause: buffers[0] });
  },
  'a circle of causes': () => {
    const [first, second] = [new Error('first'), new TypeError('second')];
    first.cause = second;
    second.cause = first;
    throw first;
  },
  frozen: () => {
    throw Object.freeze(new TypeError('ice'));
  },
  'without a message': () => {
    throw new Error();
  },
  'without a stack': () => {
    const error = new Error('a');
    Reflect.deleteProperty(error, 'stack');
    throw error;
  },
  'a stack that is no text': () => {
    throw Object.assign(new Error('a'), { stack: { lines: 1 } });
  },
  'a message with lines like frames': () => {
    throw new Error('a\n    at b (file:///c.js:1:1)\nd');
  },
  'without a prototype': () => {
    throw Object.setPrototypeOf(new Error('a'), null);
  },
  'of an event without a listener': () => new EventEmitter().emit('error', new RangeError('own')),
};
