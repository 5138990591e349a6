// One request and its program: the request's body goes in, the output comes back, both with backpressure.
// Not here: which program runs (cgi.ts), how it is started and read (program.ts).

import type { IncomingMessage, ServerResponse } from 'node:http';
import { basename, dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import { messageOf } from '../../lib/index.js';
import { answerStatus } from '../folder-listener.js';
import { argumentsOf, type CgiRequest, type CgiScript, metaVariables } from './environment.js';
import { type CgiHead, CgiHeadReader } from './head.js';
import { CgiProgram } from './program.js';

export interface RunOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** False: the program gets no body, because the request was redirected to it. */
  readonly hasBody: boolean;
}

interface Failure {
  /** Status for the client, if no head was sent yet. */
  readonly status: number;
  /** Text of the warning, behind the program's path. */
  readonly why: string;
}

/** Answers with a status, instead of the program's headers. */
function refuse(response: ServerResponse, status: number): void {
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  answerStatus(response, status);
}

/** Warns about a program; `why` follows its path. */
export function warnOf(file: string, why: string): void {
  process.emitWarning(`${file} ${why}`, 'CgiWarning');
}

/** True: the program writes the whole HTTP response by itself. RFC 3875, section 5. */
export function isRaw(file: string): boolean {
  return basename(file).startsWith('nph-');
}

export class Run {
  readonly #options: RunOptions;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #head = new CgiHeadReader();
  /** The connection, for a program that writes to it as it is. */
  #raw: Duplex | undefined;
  #program: CgiProgram | undefined;
  #timer: NodeJS.Timeout | undefined;
  #length = Infinity;
  #written = 0;
  #file = '';
  /** Reason of an incomplete response. */
  #failure: Failure | undefined;
  /** Path whose response is to be sent instead (`CgiHead.redirect`). */
  #redirect: string | undefined;

  constructor(options: RunOptions, request: IncomingMessage, response: ServerResponse) {
    this.#options = options;
    this.#request = request;
    this.#response = response;
  }

  /**
   * Resolves when the program has ended, with the path to answer with when that is a local redirect. The connection
   * of a raw program (`isRaw`) has to be the response's by now.
   */
  async start(script: CgiScript, asked: CgiRequest): Promise<string | undefined> {
    const { file } = script;
    this.#file = file;
    if (isRaw(file)) this.#raw = this.#response.socket ?? undefined;
    const options = {
      path: file,
      args: argumentsOf(asked),
      env: metaVariables(asked, script, this.#options.env),
      folder: dirname(file),
    };
    const listeners = {
      onOutput: (chunk: Buffer) => this.#receive(chunk),
      onEnd: (status: number | undefined) => this.#end(status),
    };
    try {
      this.#program = await CgiProgram.start(options, listeners);
    } catch (error) {
      // The file itself exists.
      const hint = /ENOENT|No such file/.test(messageOf(error))
        ? ' (the interpreter in its first line?)'
        : '';
      warnOf(file, `cannot be started: ${messageOf(error)}${hint}`);
      refuse(this.#response, 502);
      return undefined;
    }
    await this.#connect(this.#program);
    return this.#redirect;
  }

  /** Connects the program with the request and the client; resolves when it has ended. */
  async #connect(program: CgiProgram): Promise<void> {
    const request = this.#request;
    const response = this.#response;
    const onClose = (): void => {
      if (!response.writableFinished) program.end();
    };
    const onDrain = (): void => {
      this.#wait();
      program.resume();
    };
    const onData = (): void => this.#wait();
    const sink = this.#raw ?? response;
    response.once('close', onClose);
    sink.on('drain', onDrain);
    if (response.destroyed) program.end(); // the client has disconnected meanwhile
    if (this.#options.hasBody) {
      request.on('data', onData);
      request.pipe(program.input);
      program.input.once('close', () => {
        request.unpipe();
        request.resume();
      });
    } else program.input.end();
    this.#wait();
    await program.exited;
    response.off('close', onClose);
    sink.off('drain', onDrain);
    request.off('data', onData);
  }

  #wait(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#fail(504, `has neither read nor written for ${this.#options.timeoutMs} ms`);
    }, this.#options.timeoutMs);
  }

  #receive(chunk: Buffer): boolean {
    this.#wait();
    // Read, to its end.
    if (this.#failure !== undefined || this.#redirect !== undefined) return true;
    if (this.#response.destroyed) return true;
    if (this.#raw !== undefined) {
      this.#written += chunk.length;
      return this.#raw.write(chunk);
    }
    if (this.#response.headersSent) return this.#write(chunk);
    try {
      const complete = this.#head.push(chunk);
      if (complete === undefined) return true;
      const { head, rest } = complete;
      this.#redirect = head.redirect;
      if (head.redirect !== undefined) return true;
      this.#writeHead(head);
      return rest.length === 0 || this.#write(rest);
    } catch (error) {
      this.#fail(502, `answers with a wrong head: ${messageOf(error)}`);
      return true;
    }
  }

  /** Sends no byte beyond the announced length: it would be read as the next response. */
  #write(chunk: Buffer): boolean {
    this.#written += chunk.length;
    if (this.#written > this.#length) {
      this.#fail(502, `writes more than its Content-Length of ${this.#length}`);
      return true;
    }
    return this.#response.write(chunk);
  }

  #writeHead({ status, reason, length, headers }: CgiHead): void {
    const response = this.#response;
    for (const [name, value] of headers) response.appendHeader(name, value);
    if (length !== undefined) {
      this.#length = length;
      response.setHeader('Content-Length', length);
    }
    // HTTP/2 has no reason, and Node warns about one.
    if (reason !== '' && response.req.httpVersionMajor === 1) response.writeHead(status, reason);
    else response.writeHead(status);
    response.flushHeaders();
  }

  #fail(status: number, why: string): void {
    if (this.#failure === undefined) {
      this.#failure = { status, why };
      warnOf(this.#file, why);
    }
    this.#program?.end();
  }

  /** Handles the end of the output; a program that has closed it may run on for a while. */
  #end(status: number | undefined): void {
    clearTimeout(this.#timer);
    if (status === undefined)
      setTimeout(() => this.#program?.end(), this.#options.timeoutMs).unref();
    const response = this.#response;
    const wasKilled = status !== undefined && (status & 0x7f) !== 0;
    const isBroken = wasKilled || this.#failure !== undefined;
    if (this.#raw !== undefined && this.#written > 0) {
      this.#endRaw(this.#raw, isBroken);
    } else if (response.headersSent) {
      // Truncated responses must not appear complete.
      const isShort = this.#written < this.#length && this.#length !== Infinity;
      const { statusCode, req } = response;
      const hasBody = req.method !== 'HEAD' && statusCode !== 204 && statusCode !== 304;
      if (isBroken || (isShort && hasBody)) response.destroy();
      else response.end();
    } else if (!response.destroyed && (this.#redirect === undefined || isBroken)) {
      this.#redirect = undefined;
      if (this.#failure === undefined) warnOf(this.#file, 'has ended before its head was complete');
      refuse(response, this.#failure?.status ?? 502);
    }
  }

  /** Closes the connection: where its response ends, only the program has known. */
  #endRaw(raw: Duplex, isBroken: boolean): void {
    if (isBroken) raw.destroy();
    else raw.end(() => raw.destroy());
  }
}
