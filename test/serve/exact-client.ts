// A client that checks that each request is answered once, in order, and by its own answer. It sends requests in all
// shapes that a connection can be in when it leaves its loop: whole, in pieces, ahead, with `Expect`.

import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../support/index.js';

export const allKinds = [
  'get',
  'post',
  'pieces',
  'half',
  'early',
  'ahead',
  'expect',
  'leave',
] as const;
export type Kind = (typeof allKinds)[number];

export interface Sent {
  /** Shapes of requests. */
  readonly kinds: readonly Kind[];
  /** Share of the requests for which the loop computes, for 1 to 20 ms. */
  readonly heavyShare: number;
  /** Requests that were answered. */
  answered: number;
  /** Connections that the client has left in the middle of a request. */
  left: number;
}

/** One connection; requests over it are answered in order. */
class ExactConnection {
  readonly #socket: Socket;
  #received = '';
  #failure: Error | undefined;
  /** True: the server closes the connection after the last answer. */
  isClosing = false;
  #wake: () => void = () => {};

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1').setNoDelay();
    this.#socket.setEncoding('latin1');
    this.#socket.on('data', (text) => {
      this.#received += String(text);
      this.#wake();
    });
    const fail = (error: Error): void => {
      this.#failure ??= error;
      this.#wake();
    };
    this.#socket.on('error', fail);
    this.#socket.on('close', () => fail(new Error('the server has closed the connection')));
  }

  write(text: string): void {
    this.#socket.write(text, 'latin1');
  }

  leave(isReset: boolean): void {
    if (isReset) this.#socket.resetAndDestroy();
    else this.#socket.destroy();
  }

  /** Waits for text that `length` finds the end of: 0 while there is none. Returns and removes it. */
  async #next(length: (received: string) => number): Promise<string> {
    for (;;) {
      const end = length(this.#received);
      if (end > 0) {
        const text = this.#received.slice(0, end);
        this.#received = this.#received.slice(end);
        return text;
      }
      if (this.#failure !== undefined) throw this.#failure;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Waits for `100 Continue`. */
  async continued(): Promise<void> {
    const text = await this.#next(
      (received) => received.indexOf('\r\n\r\n') + 4 * Number(received.includes('\r\n\r\n')),
    );
    if (!text.startsWith('HTTP/1.1 100 ')) throw new Error(`not 100 Continue: ${text}`);
  }

  /** Returns the body of the next answer, which has a length. */
  async answer(): Promise<string> {
    const text = await this.#next((received) => {
      const head = received.indexOf('\r\n\r\n');
      const [, length] = /content-length: (\d+)/i.exec(received.slice(0, Math.max(0, head))) ?? [];
      if (head < 0) return 0;
      if (length === undefined) throw new Error(`an answer without a length: ${received}`);
      const end = head + 4 + Number(length);
      return received.length >= end ? end : 0;
    });
    this.isClosing ||= /^connection: close\r$/im.test(text);
    if (!text.startsWith('HTTP/1.1 200 ')) throw new Error(`not 200: ${text}`);
    return text.slice(text.indexOf('\r\n\r\n') + 4);
  }

  /** Throws when more has come than was asked for. */
  checkNoMore(): void {
    if (this.#received !== '') throw new Error(`unexpected: ${this.#received}`);
  }
}

/** Sends requests over one connection after the other until `isOver`; throws at the first wrong answer. */
export async function sendExactly(
  port: number,
  name: string,
  { next, integer, pick }: Random,
  sent: Sent,
  isOver: () => boolean,
): Promise<void> {
  let connection = new ExactConnection(port);
  const pause = async (): Promise<void> => {
    if (next() < 0.5) await sleep(integer(0, 6));
  };
  for (let number = 0; !isOver(); number += 1) {
    const path = `/${name}/${number}${next() < sent.heavyShare ? `?block=${integer(1, 21)}` : ''}`;
    const body = 'x'.repeat(integer(0, 3000));
    const sum = body.length * 120;
    const post = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n`;
    const get = `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
    const check = async (path: string, sum: number): Promise<void> => {
      const answer = await connection.answer();
      if (!answer.startsWith(`${path} ${sum} `)) throw new Error(`${path} ${sum}: ${answer}`);
      sent.answered += 1;
    };
    if (connection.isClosing) connection = new ExactConnection(port);
    switch (pick(sent.kinds)) {
      case 'get':
        connection.write(get);
        await check(path, 0);
        break;
      case 'post':
        connection.write(`${post}\r\n${body}`);
        await check(path, sum);
        break;
      case 'pieces': {
        const text = `${post}\r\n${body}`;
        const cut = integer(1, text.length);
        connection.write(text.slice(0, cut));
        await pause();
        connection.write(text.slice(cut));
        await check(path, sum);
        break;
      }
      case 'half': {
        // The rest of a request follows half of the next one.
        const cut = integer(1, get.length);
        connection.write(`${post}\r\n${body}${get.slice(0, cut)}`);
        await check(path, sum);
        await pause();
        connection.write(get.slice(cut));
        await check(path, 0);
        break;
      }
      case 'early': {
        const early = `/${name}/${number}/early`;
        connection.write(`${post.replace(path, early)}\r\n`);
        await check(early, 0);
        await pause();
        connection.write(`${body}${get}`);
        await check(path, 0);
        break;
      }
      case 'ahead':
        connection.write(`${get}${post}\r\n${body}${get}`);
        await check(path, 0);
        await check(path, sum);
        await check(path, 0);
        break;
      case 'expect':
        connection.write(`${post}Expect: 100-continue\r\n\r\n`);
        await connection.continued();
        await pause();
        connection.write(body);
        await check(path, sum);
        break;
      case 'leave':
        if (next() < 0.8) break;
        connection.checkNoMore();
        connection.write(pick([get, get.slice(0, integer(1, get.length)), `${post}\r\n`]));
        await pause();
        connection.leave(next() < 0.5);
        connection = new ExactConnection(port);
        sent.left += 1;
        break;
    }
    connection.checkNoMore();
    await pause();
  }
  connection.leave(false);
}
