// Connecting the two ends of a stream: the opener sends a request with the address of its own end, and the
// reply is the address of the other end.

import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { CodedError, hasCode } from '../../errors.js';
import { invalid, nextTick } from '../../lib/index.js';
import type { Consumer } from '../delivery/consumer.js';
import type { BusHeaders } from '../delivery/headers.js';
import type { BusMessage, ReplyRequestOptions } from '../delivery/message.js';
import type { Receivers } from '../delivery/receivers.js';
import { consumerLost, handlerError } from '../errors.js';
import type { StreamFrame } from '../protocol.js';
import { streamPrefix } from '../reserved.js';
import type { Bus, Handler, SendOptions } from '../types.js';
import { BusStream, destroyedText } from './stream.js';

export interface StreamOptions extends ReplyRequestOptions, SendOptions {
  /** Aborts the opening, and afterwards the stream. */
  readonly signal?: AbortSignal | undefined;
}

/** Called with each stream that was opened to an address, and the headers that came with it. */
export type StreamHandler = (stream: Duplex, headers: BusHeaders) => unknown;

/** The parts of a bus that streams use. */
export interface StreamParts {
  /** For all addresses. */
  readonly bus: Bus;
  readonly receivers: Receivers;
}

/** Makes one end; its consumer is registered before the other end gets its address. */
function makeEnd({ bus, receivers }: StreamParts, signal?: AbortSignal) {
  const address = `${streamPrefix}${randomUUID()}`;
  let other: string | undefined;
  /** Frames sent before the other end's address arrived: first items may come ahead of it. */
  const early: StreamFrame[] = [];
  let unwatch = (): void => {};
  const stream: BusStream = new BusStream(
    {
      send: (frame: StreamFrame): void => {
        if (other === undefined) early.push(frame);
        else bus.send(other, frame);
      },
      drained: () => bus.drained(),
      onClose: () => {
        unwatch();
        consumer.close();
      },
    },
    signal,
  );
  const consumer: Consumer = bus.consumer(address, (message) => stream.receive(message.body));
  const connect = (to: string): void => {
    if (stream.destroyed) return; // nobody would end the watch
    other = to;
    unwatch = receivers.watch(to, () => stream.lose());
    for (const frame of early.splice(0)) bus.send(to, frame);
  };
  return { address, stream, connect };
}

/** As `Bus.openStream`. */
export async function openStream(
  parts: StreamParts,
  address: string,
  options: StreamOptions = {},
): Promise<BusStream> {
  const end = makeEnd(parts, options.signal);
  end.stream.once('error', ignore); // until the opener has it
  try {
    const answer = await parts.bus.request(address, end.address, options);
    end.connect(otherEnd(answer.body, () => noAcceptor(address)));
    // The other side may have ended it before its answer was read here.
    if (end.stream.destroyed) throw end.stream.errored ?? consumerLost();
    end.stream.off('error', ignore);
    return end.stream;
  } catch (error) {
    end.stream.destroy();
    throw error;
  }
}

function ignore(): void {}

/** Returns the address of the other end; throws `wrong()` for a value of another origin. */
function otherEnd(body: unknown, wrong: () => CodedError): string {
  if (typeof body === 'string' && body.startsWith(streamPrefix)) return body;
  throw wrong();
}

function noAcceptor(address: string): CodedError {
  const text = `the consumer of "${address}" has answered as to a request, and accepts no streams`;
  return new CodedError('OPTION_INVALID', `${text}: register it by acceptStreams, or call request`);
}

function noOpener(address: string): CodedError {
  const text = `"${address}" accepts streams, and no other messages: call openStream`;
  return new CodedError('OPTION_INVALID', text);
}

/**
 * Returns the handler of a consumer that accepts streams; `keep` is called with each. Throws
 * `OPTION_INVALID`.
 */
export function streamAcceptor(
  parts: StreamParts,
  handler: StreamHandler,
  keep: (stream: Duplex) => Duplex,
): Handler {
  if (typeof handler !== 'function') throw invalid('handler', handler, 'a function');
  return async (message: BusMessage) => {
    const other = otherEnd(message.body, () => noOpener(message.address));
    const end = makeEnd(parts);
    // The opener decides when and with what it ends: that may not end the program of a handler without a listener.
    end.stream.on('error', ignore);
    end.connect(other);
    const { address, headers } = message;
    const handling = handled(end.stream, address, () => handler(keep(end.stream), headers));
    await Promise.all([handling, replyLater(message, end.stream, end.address)]);
  };
}

/**
 * Replies once the callbacks are over that the handler has queued: a stream that it refuses at once is never opened, and
 * the opener's call rejects with the reason.
 */
async function replyLater(message: BusMessage, stream: BusStream, address: string): Promise<void> {
  await undefined;
  await new Promise<void>((resolve) => nextTick(resolve));
  if (stream.destroyed) message.failWith(destroyedBy(stream.errored));
  else message.reply(address);
}

function destroyedBy(reason: Error | null): CodedError {
  if (hasCode(reason, 'BUS_HANDLER_ERROR')) return reason;
  return new CodedError('BUS_CONSUMER_LOST', destroyedText(reason?.message), { cause: reason });
}

/**
 * Destroys the stream with what the handler throws, as it would fail a request. Rejects with an error that comes after
 * the end of the stream and is not its reason.
 */
async function handled(stream: BusStream, address: string, handle: () => unknown): Promise<void> {
  try {
    await handle();
  } catch (error) {
    if (!stream.destroyed) stream.destroy(handlerError(address, error));
    else if (error !== stream.errored) throw error;
  }
}
