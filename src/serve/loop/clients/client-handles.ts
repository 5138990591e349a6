// Node's handle of an accepted connection; made from a descriptor where the native core accepts. It reports its
// end, from which the loop counts its open connections and the bytes that it has sent. On the path of each
// connection.

import { Socket } from 'node:net';
import { bytesSentNatively } from '../../../http-apps/index.js';

/** A stream handle of Node: a `TCP` or a `Pipe`. */
export interface StreamHandle {
  readonly bytesWritten: number;
  open(fd: number): number;
  close(onClosed?: () => void): void;
  /** TCP only: closes with a reset, for `socket.resetAndDestroy()`. */
  reset?(onClosed?: () => void): number;
  [isEndReported]?: boolean;
  [acceptedFd]?: number;
}

/** Set on a handle once its end was reported. */
const isEndReported = Symbol('manycore.isEndReported');
/** The descriptor that a handle was made from. */
const acceptedFd = Symbol('manycore.acceptedFd');

/** Called once for each handle, with the bytes sent over it and its descriptor (-1: Node has accepted it). */
export type OnHandleEnd = (bytesWritten: number, fd: number) => void;

interface StreamHandleClass {
  new (type: number): StreamHandle;
  readonly name: string;
  readonly prototype: StreamHandle;
}
/** The second argument of both classes' constructors is for accepted connections. */
const connectionType = 0;

/** Makes handles for the connections of one listening socket, which are all alike. */
export class ClientHandles {
  readonly #onEnd: OnHandleEnd;
  #class: StreamHandleClass | undefined;

  constructor(onEnd: OnHandleEnd) {
    this.#onEnd = onEnd;
    this.#class = undefined;
  }

  /** Makes a handle that Node has accepted report its end. */
  adopt(handle: StreamHandle): StreamHandle {
    const itsClass: unknown = handle.constructor;
    if (this.#class === undefined && isStreamHandleClass(itsClass)) {
      this.#class = reportingClass(itsClass, this.#onEnd);
    }
    if (this.#class !== undefined) Object.setPrototypeOf(handle, this.#class.prototype);
    return handle;
  }

  /**
   * Makes a handle for a descriptor, and takes that over. The first one comes from a `Socket`, which detects the
   * kind of the descriptor; the others are made by its class.
   */
  open(fd: number): StreamHandle {
    if (this.#class !== undefined) {
      const made = new this.#class(connectionType);
      made.open(fd);
      made[acceptedFd] = fd;
      return made;
    }
    const socket = new Socket({ fd, readable: false, writable: false });
    const made: unknown = Reflect.get(socket, '_handle');
    if (!isStreamHandle(made)) throw new Error(`descriptor ${fd} is no connection`);
    Reflect.set(socket, '_handle', null);
    made[acceptedFd] = fd;
    return this.adopt(made);
  }
}

/** Returns a subclass of `base` whose handles report their end, once, with the bytes sent over them. */
function reportingClass(base: StreamHandleClass, onEnd: OnHandleEnd): StreamHandleClass {
  const report = (handle: StreamHandle): void => {
    if (handle[isEndReported]) return;
    handle[isEndReported] = true;
    onEnd(handle.bytesWritten + bytesSentNatively(handle), handle[acceptedFd] ?? -1);
  };
  class Reporting extends base {
    override close(onClosed?: () => void): void {
      report(this);
      super.close(onClosed);
    }
  }
  const { reset } = base.prototype;
  if (reset !== undefined) {
    Reporting.prototype.reset = function (onClosed) {
      report(this);
      return Reflect.apply(reset, this, [onClosed]);
    };
  }
  // The class name that inspecting a socket shows.
  Object.defineProperty(Reporting, 'name', { value: base.name });
  return Reporting;
}

/** Returns the descriptor that a socket's handle was made from, or -1. */
export function acceptedFdOf(socket: object): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  return isStreamHandle(handle) ? (handle[acceptedFd] ?? -1) : -1;
}

function isStreamHandle(value: unknown): value is StreamHandle {
  return typeof value === 'object' && value !== null && 'open' in value && 'close' in value;
}

function isStreamHandleClass(value: unknown): value is StreamHandleClass {
  return typeof value === 'function';
}
