// Words by which the listener thread sees which connections of this loop are between two requests
// (crates/core/src/accept/idle.rs): while this loop is blocked, it takes those that have input, and gives them to
// a loop that has time. On the path of each request: two plain stores, and a load that shows whether the listener
// thread has to be woken.
//
// A word becomes busy with the first byte of a request, which Node's parser reports (`kOnMessageBegin`, an element
// of the parser on every line from 20 to 26; Node clears it before another connection gets the parser). The
// event of a whole head comes too late: the loop may have read half of one, together with the request before it.

import type { Socket } from 'node:net';
import { nodeHttp } from '../../../lib/index.js';
import { acceptedFdOf } from './client-handles.js';

/** The word of the listener thread: 1 while it does not check the loops. */
const asleepAt = 0;
/** A word that nobody reads, for connections that stay here. */
const sinkAt = 1;
const busy = 0;
/** A word has the number of bytes above its lowest bit. */
const maxBytes = 2 ** 31 - 1;
/** `HTTPParser.kOnMessageBegin`. */
const onMessageBegin = 0;

/** A connection's part of these words. */
export interface IdleState {
  /** Place of its word. */
  readonly at: number;
  /** Requests of which at least one byte was read. */
  begun: number;
  /** Requests whose head was read. */
  started: number;
}

interface ParserOfNode {
  readonly socket?: object | null;
}

export class IdleConnections {
  readonly #words: Uint32Array<ArrayBufferLike>;
  readonly #wake: () => void;
  #onBegin: ((this: ParserOfNode) => void) | undefined;

  /** `words`: `undefined` where connections stay at their loops. `wake` wakes the listener thread. */
  constructor(words: ArrayBufferLike | undefined, wake: () => void) {
    this.#words = words === undefined ? new Uint32Array(sinkAt + 1) : new Uint32Array(words);
    this.#wake = wake;
    this.#onBegin = undefined;
  }

  /**
   * Returns the state of a connection without a request. Only plain HTTP/1 connections of the listener thread have
   * a word of their own: the state of others is in this loop. `idleOf` returns the state of a socket.
   */
  enter(
    socket: Socket,
    server: object | undefined,
    idleOf: (socket: object) => IdleState | undefined,
  ): IdleState {
    const at = this.#placeOf(socket, server);
    const parser: unknown = at === sinkAt ? undefined : Reflect.get(socket, 'parser');
    if (typeof parser !== 'object' || parser === null) return { at: sinkAt, begun: 0, started: 0 };
    this.#onBegin ??= this.#beginner(idleOf);
    Reflect.set(parser, onMessageBegin, this.#onBegin);
    this.#setIdle(at, socket);
    return { at, begun: 0, started: 0 };
  }

  /** Returns the one function that all parsers call with the first byte of a request. */
  #beginner(idleOf: (socket: object) => IdleState | undefined): (this: ParserOfNode) => void {
    const words = this.#words;
    const awake = this.#awake;
    return function begin() {
      const state = this.socket ? idleOf(this.socket) : undefined;
      if (state === undefined) return;
      state.begun += 1;
      words[state.at] = busy;
      if (words[asleepAt] !== 0) awake();
    };
  }

  #placeOf(socket: Socket, server: object | undefined): number {
    const fd = acceptedFdOf(socket);
    if (fd <= sinkAt || fd >= this.#words.length) return sinkAt;
    if (!(server instanceof nodeHttp().Server)) return sinkAt;
    // A limit of the program could turn the connection away at another loop.
    return typeof server.maxConnections === 'number' ? sinkAt : fd;
  }

  /** The answer to the last request was sent. */
  end(state: IdleState, socket: Socket, request: object, response: object): void {
    if (state.at === sinkAt || state.begun !== state.started) return;
    const isRead = Reflect.get(request, 'complete') === true;
    const isLast = Reflect.get(response, '_last') !== false; // the connection is closed
    if (isRead && !isLast && socket.writableLength === 0) this.#setIdle(state.at, socket);
  }

  /** The connection with this descriptor ends; the descriptor is still open. */
  leave(fd: number): void {
    if (fd > sinkAt && fd < this.#words.length) this.#words[fd] = busy;
  }

  #setIdle(at: number, { bytesRead }: Socket): void {
    this.#words[at] = bytesRead > maxBytes ? busy : bytesRead * 2 + 1;
  }

  readonly #awake = (): void => {
    this.#words[asleepAt] = 0;
    this.#wake();
  };
}
