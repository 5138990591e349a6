// Node's handle of an accepted connection; made from a descriptor where the native core accepts. It reports its
// end, from which the loop counts its open connections and the bytes that it has sent. On the path of each
// connection.

import { Socket } from 'node:net';
import { bytesSentNatively } from '../../http-apps/index.js';

/** A stream handle of Node: a `TCP` or a `Pipe`. */
export interface StreamHandle {
  readonly bytesWritten: number;
  open(fd: number): number;
  close(onClosed?: () => void): void;
  /** TCP only: closes with a reset, for `socket.resetAndDestroy()`. */
  reset?(onClosed?: () => void): number;
  [isEndReported]?: boolean;
}

/** Set on a handle once its end was reported. */
const isEndReported = Symbol('manycore.isEndReported');

interface StreamHandleClass {
  new (type: number): StreamHandle;
  readonly name: string;
  readonly prototype: StreamHandle;
}
/** The second argument of both classes' constructors is for accepted connections. */
const connectionType = 0;

/** Makes handles for the connections of one listening socket, which are all alike. */
export class ClientHandles {
  readonly #onEnd: (bytesWritten: number) => void;
  #class: StreamHandleClass | undefined;

  /** `onEnd` is called once for each handle, with the bytes sent over it. */
  constructor(onEnd: (bytesWritten: number) => void) {
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
      return made;
    }
    const socket = new Socket({ fd, readable: false, writable: false });
    const made: unknown = Reflect.get(socket, '_handle');
    if (!isStreamHandle(made)) throw new Error(`descriptor ${fd} is no connection`);
    Reflect.set(socket, '_handle', null);
    return this.adopt(made);
  }
}

/** Returns a subclass of `base` whose handles report their end, once, with the bytes sent over them. */
function reportingClass(
  base: StreamHandleClass,
  onEnd: (bytesWritten: number) => void,
): StreamHandleClass {
  const report = (handle: StreamHandle): void => {
    if (handle[isEndReported]) return;
    handle[isEndReported] = true;
    onEnd(handle.bytesWritten + bytesSentNatively(handle));
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

function isStreamHandle(value: unknown): value is StreamHandle {
  return typeof value === 'object' && value !== null && 'open' in value && 'close' in value;
}

function isStreamHandleClass(value: unknown): value is StreamHandleClass {
  return typeof value === 'function';
}
