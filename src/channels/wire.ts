// Messages as JSON in frames of a channel, for rare events (a process starts, a program listens, a server
// drains): it may be slow and easy to read. Not here: the messages.

import { CodedError, hasCode } from '../errors.js';
import { jsonOf } from '../lib/index.js';
import type { ByteWriter } from './bytes.js';
import type { Channel } from './types.js';

const messageKind = 1;

function write(writer: ByteWriter, bytes: Uint8Array): boolean {
  writer.raw(bytes);
  return true;
}

/** Returns `undefined` for invalid JSON, which the message parsers refuse. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface WireListener {
  onMessage(message: unknown): void;
  /** Nothing more will come; with an error, the last bytes were no frame. */
  onClose?(error?: Error): void;
}

/** One end. It keeps the event loop alive until `close`, `unref` or the peer's end. */
export class Wire<Message extends object> {
  readonly #channel: Channel;
  readonly #outbox: Uint8Array[] = [];
  #isDelivering = false;

  constructor(channel: Channel, listener: WireListener) {
    this.#channel = channel;
    channel.handle({
      onFrame: (_kind, _task, _target, body) => {
        const bytes = body.copy(body.limit - body.position);
        this.#isDelivering = true;
        try {
          listener.onMessage(parsed(bytes.toString('utf8')));
        } finally {
          this.#isDelivering = false;
        }
      },
      onDrain: () => this.#flush(),
      onClose: (error) =>
        listener.onClose?.(hasCode(error, 'CHANNEL_FRAME_CORRUPT') ? error : undefined),
    });
    channel.ref();
  }

  /** Sends, or does nothing when the peer is gone: `onClose` reports that. */
  post(message: Message): void {
    this.#outbox.push(Buffer.from(jsonOf(message)));
    this.#flush();
  }

  #flush(): void {
    for (;;) {
      const bytes = this.#outbox[0];
      if (bytes === undefined) return;
      const outcome = this.#channel.trySend(messageKind, 0, 0, write, bytes);
      if (outcome === 'full') return;
      if (outcome === 'refused') {
        throw new CodedError('INTERNAL_STATE', 'a message was refused: a bug in manycore');
      }
      this.#outbox.shift();
    }
  }

  /**
   * Delivers what has arrived, in this call instead of a later turn. Returns false where the channel cannot
   * (`Channel.poll`), or in the middle of a message.
   */
  poll(): boolean {
    if (this.#channel.poll === undefined || this.#isDelivering) return false;
    this.#channel.poll();
    return true;
  }

  unref(): void {
    this.#channel.unref();
  }

  close(): void {
    this.#channel.close();
  }
}
