// The process's side of the native core: its listener thread, the scoreboard in shared memory, descriptors over
// a control socket.

import { acceptChannel } from '../../channels/index.js';
import { callNative, type NativeAcceptor, requireNative } from '../../native.js';
import { ControlSocket } from '../../worker/index.js';
import type { ProcessSystem } from '../process/system.js';
import type { Envelope, ToLoop } from '../protocol.js';
import { privateFd } from '../shared/dup-fds.js';
import { type LinkListener, socketPort, WireLink } from '../shared/link.js';
import type { LoopSystem, NativeProcessTicket, ProcessTicket } from '../tickets.js';

/** Time after the deadline of a drain until the main thread is ended, whatever it does, in ms. */
const exitGraceMs = 10_000;

export class NativeProcessSystem implements ProcessSystem {
  readonly board: ArrayBuffer;
  readonly up: WireLink;
  readonly ofLoops: LoopSystem;
  readonly loopsListen = false;
  readonly #acceptor: NativeAcceptor;

  /** Throws `NATIVE_MISSING`, `NATIVE_REFUSED`. */
  constructor(
    { process, placement, overloadMs, parentPid, drainTimeoutMs }: ProcessTicket,
    {
      boardFd,
      bellFds,
      handoverFds,
      controlSocketFd,
      activeLeasesFd,
      channel,
    }: NativeProcessTicket,
    listener: LinkListener,
  ) {
    const native = requireNative();
    const board = callNative(() => native.NativeBoard.open(boardFd));
    this.board = board.buffer();
    this.#acceptor = callNative(
      () => new native.NativeAcceptor(board, process, bellFds, placement, overloadMs, handoverFds),
    );
    const controlSocket = new ControlSocket(controlSocketFd);
    const { key: acceptorKey } = this.#acceptor;
    this.ofLoops = { kind: 'native', acceptorKey, activeLeasesFd: privateFd(activeLeasesFd) };
    this.up = new WireLink(acceptChannel(channel).channel, socketPort(controlSocket), listener);
    // Ends a blocked main thread after the supervisor's end. Only with pidfds, or it would end at once.
    if (native.probeKernel().pidfd === '') {
      native.watchParent(parentPid, 0, drainTimeoutMs + exitGraceMs);
    }
  }

  addSocket(number: number, fd: number): void {
    callNative(() => this.#acceptor.addSocket(number, fd));
  }

  removeSocket(number: number): void {
    this.#acceptor.removeSocket(number);
  }

  wake(): void {
    this.#acceptor.wake();
  }

  forThread(envelope: Envelope<ToLoop>): Envelope<ToLoop> {
    return envelope;
  }

  close(): void {
    this.#acceptor.close();
  }
}
