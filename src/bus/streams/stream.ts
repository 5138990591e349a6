// A stream between two ends of a bus: each is a Duplex of Node for values of any kind. Each end has an
// address of its own, to which the other sends. An end sends no more than the other has granted: as many
// items as its buffer takes, so a slow reader holds up the writer, and nothing piles up between. When the
// other end is gone its address has no consumer any more, and the stream is destroyed. Not here: connecting
// the two ends (streams.ts).

import { Duplex } from 'node:stream';
import { CodedError, type ErrorCode, hasCode } from '../../errors.js';
import { abortError, errorOf, nextTick, unwatchAbort, watchAbort } from '../../lib/index.js';
import { parseStreamFrame, type StreamFrame, sendText } from '../protocol.js';

/** Items that an end takes before it has to be read. */
const streamWindow = 16;

/** The parts of a bus that a stream uses. */
export interface StreamWire {
  /** Sends to the other end. Throws `BUS_FULL`, `TRANSFER_…`. */
  readonly send: (frame: StreamFrame) => void;
  /** Resolves when nothing waits on the way any more. */
  readonly drained: () => Promise<void>;
  /** Called once, when this end is over. */
  readonly onClose: () => void;
}

type Done = (error?: Error | null) => void;

export class BusStream extends Duplex {
  readonly #wire: StreamWire;
  readonly #signal: AbortSignal | undefined;
  /** Items that the other end takes now. */
  #credit = streamWindow;
  /** Items that were received and not granted anew yet. */
  #taken = 0;
  /** A write that waits for credit. */
  #waiting: (() => void) | undefined;
  #hasEnded = false;
  #isNotified = false;

  /** @internal */
  constructor(wire: StreamWire, signal?: AbortSignal) {
    // With autoDestroy `for await` over the items would end the other direction, too.
    super({ objectMode: true, highWaterMark: streamWindow, autoDestroy: false });
    this.once('end', this.#destroyWhenOver);
    this.once('finish', this.#destroyWhenOver);
    this.#wire = wire;
    this.#signal = signal;
    if (signal !== undefined) watchAbort(signal, this.#abort);
  }

  readonly #destroyWhenOver = (): void => {
    if (this.readableEnded && this.writableFinished) this.destroy();
  };

  readonly #abort = (): void => {
    this.destroy(abortError(this.#signal));
  };

  override _write(chunk: unknown, _encoding: string, done: Done): void {
    if (this.#credit > 0) this.#deliver(chunk, done);
    else this.#waiting = () => this.#deliver(chunk, done);
  }

  #deliver(item: unknown, done: Done): void {
    this.#credit -= 1;
    this.#post({ type: 'item', item }, done);
  }

  override _final(done: Done): void {
    this.#post({ type: 'end' }, done);
  }

  override _read(): void {
    if (this.#taken < streamWindow / 2 || this.destroyed) return;
    const items = this.#taken;
    this.#taken = 0;
    this.#post({ type: 'credit', items }, ignore);
  }

  /** Sends once there is room, unless the stream is destroyed before; any other error destroys it. */
  #post(frame: StreamFrame, done: Done): void {
    if (this.destroyed) {
      done(this.errored ?? unsent());
      return;
    }
    try {
      this.#wire.send(frame);
    } catch (error) {
      if (hasCode(error, 'BUS_FULL')) {
        void this.#wire.drained().then(() => this.#post(frame, done));
      } else this.#fail(error, done);
      return;
    }
    done();
  }

  #fail(error: unknown, done: Done): void {
    const thrown = errorOf(error);
    this.destroy(thrown);
    done(thrown);
  }

  override _destroy(error: Error | null, done: Done): void {
    if (this.#signal !== undefined) unwatchAbort(this.#signal, this.#abort);
    if (this.#waiting !== undefined) nextTick(this.#waiting); // calls back with an error
    this.#waiting = undefined;
    const isOver = this.#hasEnded && this.writableFinished;
    if (!isOver && !this.#isNotified) this.#notifyOther(error);
    this.#wire.onClose();
    done(error);
  }

  /** Sends the other end the reason of the end. */
  #notifyOther(error: Error | null): void {
    const isHandlers = hasCode(error, 'BUS_HANDLER_ERROR');
    const code = isHandlers ? { code: error.code } : {};
    const notify = (message: string | undefined): void =>
      this.#wire.send({ type: 'destroyed', message, ...code });
    try {
      if (error === null) notify(undefined);
      else sendText(error.message, notify);
    } catch {
      // no consumer there any more, or no room: its watch of this address reports the end
    }
  }

  /** Takes a message of the other end. @internal */
  receive(body: unknown): void {
    const frame = parseStreamFrame(body);
    switch (frame.type) {
      case 'item':
        this.#taken += 1;
        this.push(frame.item);
        break;
      case 'credit': {
        this.#credit += frame.items;
        const waiting = this.#waiting;
        this.#waiting = undefined;
        waiting?.();
        break;
      }
      case 'end':
        this.#hasEnded = true;
        this.push(null);
        break;
      case 'destroyed':
        this.#lose(destroyedText(frame.message), frame.code);
        break;
    }
  }

  /** The other end has no consumer any more. @internal */
  lose(): void {
    if (this.#hasEnded && this.writableFinished) return;
    this.#lose('the other end of the stream is gone');
  }

  #lose(message: string, code: ErrorCode = 'BUS_CONSUMER_LOST'): void {
    this.#isNotified = true;
    this.destroy(new CodedError(code, message));
  }
}

/** The text of an end's error where the other one was destroyed with the error text `reason`. */
export function destroyedText(reason: string | undefined): string {
  return `the other end was destroyed: ${reason ?? 'without an error'}`;
}

function ignore(): void {}

function unsent(): CodedError {
  return new CodedError('ABORTED', 'the stream was destroyed before this was sent');
}
