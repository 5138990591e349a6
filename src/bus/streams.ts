// How the two ends of a stream find each other: who opens one asks the address with the address of its
// own end, and is answered with that of the other.

import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { invalid } from '../internal/index.js';
import type { Consumer } from './consumer.js';
import type { BusHeaders, BusMessage, ReplyRequestOptions } from './message.js';
import { parseAddress, type StreamFrame } from './protocol.js';
import { streamPrefix } from './reserved.js';
import { asError, BusStream } from './stream.js';
import type { Bus, Handler, SendOptions } from './types.js';

export interface StreamOptions extends ReplyRequestOptions, SendOptions {
  /** Aborts the opening, and afterwards the stream. */
  readonly signal?: AbortSignal | undefined;
}

/** Called with each stream that was opened to an address, and the headers that came with it. */
export type StreamHandler = (stream: Duplex, headers: BusHeaders) => unknown;

/** What streams need of a bus besides its public face. */
export interface StreamBus extends Bus {
  /** Calls `onGone` when nobody consumes `address` any more; returns what ends that. */
  watch(address: string, onGone: () => void): () => void;
}

/** One end, whose consumer is there before the other knows of it. */
function makeEnd(bus: StreamBus, signal?: AbortSignal) {
  const address = `${streamPrefix}${randomUUID()}`;
  let other: string | undefined;
  /** What is said before the other end is known: its first items may come ahead of that. */
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
    other = to;
    unwatch = bus.watch(to, () => stream.lose());
    for (const frame of early.splice(0)) bus.send(to, frame);
  };
  return { address, stream, connect };
}

/** As `Bus.openStream`. */
export async function openStream(
  bus: StreamBus,
  address: string,
  options: StreamOptions = {},
): Promise<BusStream> {
  const end = makeEnd(bus, options.signal);
  end.stream.once('error', ignore); // until whoever opens has it
  try {
    const answer = await bus.request(address, end.address, options);
    end.connect(parseAddress(answer.body));
    end.stream.off('error', ignore);
    return end.stream;
  } catch (error) {
    end.stream.destroy();
    throw error;
  }
}

function ignore(): void {}

/** Returns the handler of a consumer that accepts streams. Throws `OPTION_INVALID`. */
export function streamAcceptor(bus: StreamBus, handler: StreamHandler): Handler {
  if (typeof handler !== 'function') throw invalid('handler', handler, 'a function');
  return (message: BusMessage) => {
    const other = parseAddress(message.body);
    const end = makeEnd(bus);
    end.connect(other);
    message.reply(end.address);
    return handled(end.stream, () => handler(end.stream, message.headers));
  };
}

/** What the handler throws ends the stream, as it ends a request. */
async function handled(stream: BusStream, handle: () => unknown): Promise<void> {
  try {
    await handle();
  } catch (error) {
    stream.destroy(asError(error));
  }
}
