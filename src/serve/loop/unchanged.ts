// Functions of Node that work otherwise in a loop of a server than in a process of its own: `listen()` with
// `exclusive`, datagram sockets, `process.send`. Not here: sockets of servers (listen.ts).

import { Socket as DatagramSocket } from 'node:dgram';
import { Server } from 'node:net';
import { isProgramListening } from '../../lib/index.js';

/** Called once in each loop, before the program. */
export function prepareForProgram(): void {
  shareExclusiveServers();
  keepDatagramsHere();
  answerSend();
}

/** Lets servers with `exclusive: true` share their ports, too: without cluster the option has no effect. */
function shareExclusiveServers(): void {
  const { listen } = Server.prototype;
  const shared = function (this: Server, ...given: unknown[]): unknown {
    const [options, ...rest] = given;
    const isExclusive = Boolean(Object(options).exclusive) && typeof options === 'object';
    const isShared = isExclusive && options !== null && isProgramListening(options);
    const args = isShared ? [{ ...options, exclusive: false }, ...rest] : given;
    return Reflect.apply(listen, this, args);
  };
  Reflect.set(Server.prototype, 'listen', shared);
}

/** Binds datagram sockets in their own thread: as a worker of `cluster`, Node would ask the primary for them. */
function keepDatagramsHere(): void {
  const { bind } = DatagramSocket.prototype;
  const exclusive = function (this: DatagramSocket, ...given: unknown[]): unknown {
    const [first, second] = given;
    const callback = given.find((each) => typeof each === 'function');
    const isOptions = typeof first === 'object' && first !== null;
    const positional = {
      ...(typeof first !== 'function' && { port: first }),
      ...(typeof second !== 'function' && { address: second }),
    };
    const options = { ...(isOptions ? first : positional), exclusive: true };
    return Reflect.apply(bind, this, [options, ...(callback === undefined ? [] : [callback])]);
  };
  Reflect.set(DatagramSocket.prototype, 'bind', exclusive);
}

/**
 * Accepts messages to a parent, which programs send under PM2 and `cluster`. `ready` has no effect, because a loop
 * is ready when it listens; the others are dropped with a warning.
 */
function answerSend(): void {
  let hasWarned = false;
  const send = (message: unknown, ...given: readonly unknown[]): boolean => {
    if (message !== 'ready' && !hasWarned) {
      hasWarned = true;
      process.emitWarning('process.send(): no parent receives messages under manycore serve');
    }
    const callback = given.find((each) => typeof each === 'function');
    if (typeof callback === 'function')
      process.nextTick(() => Reflect.apply(callback, process, [null]));
    return true;
  };
  Reflect.set(process, 'send', send);
}
