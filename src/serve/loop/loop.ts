// One event loop of a server: loads the program, takes connections from the listener thread, and
// writes its state to its row of the scoreboard. The same in a thread and in a process's main thread.

import { closeSync } from 'node:fs';
import { Server as NetServer } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { addSource } from '../../agent/index.js';
import { CodedError } from '../../errors.js';
import { nodeHttp } from '../../lib/index.js';
import type { NativeLoopInbox } from '../../native.js';
import { callNative, requireNative } from '../../native.js';
import { finishWork, useSharedWorkers } from '../../worker/index.js';
import {
  type ArrivedEnvelope,
  type FromLoop,
  type ListenAnswer,
  type ListenQuery,
  parseToLoop,
  travelled,
} from '../protocol.js';
import { boardAt, maxSockets, Row } from '../shared/board.js';
import type { Link } from '../shared/link.js';
import type { AppSettings } from '../tickets.js';
import { listenWith, loadApp } from './app.js';
import { Connections } from './connections.js';
import { Drain } from './drain.js';
import { Leases } from './leases.js';
import {
  type ListenHandle,
  type ListenHooks,
  listenForExport,
  takeOverListening,
} from './listen.js';
import { LoopThreads } from './loop-threads.js';
import { Member } from './member.js';
import { refuseMisdirected } from './misdirected.js';
import { type LoopProgram, setProgramLoop } from './program-loop.js';

export interface LoopOptions {
  readonly process: number;
  readonly index: number;
  readonly acceptorKey: number;
  /** The memory of `ActiveLeases`; stays the caller's. */
  readonly activeLeasesFd: number;
  readonly app: AppSettings;
  /** To the process. */
  readonly up: Link<FromLoop>;
  /** Called when every connection is closed after a drain. */
  readonly onDrained: () => void;
}

const entryWords = 2;

/** Rejects options that would have no effect: a server must not lack TLS unnoticed. */
function refuseUnused({ tls, unix, host }: AppSettings): void {
  const unused = (tls && 'tls') ?? (unix && 'unix') ?? (host && 'host');
  if (unused === undefined) return;
  throw new CodedError(
    'OPTION_INVALID',
    `${unused} is for programs that export their app; this one listens by itself: ` +
      'leave the option out, and let the program do it',
  );
}

export class Loop {
  readonly #options: LoopOptions;
  readonly #unregister: () => void;
  readonly #inbox: NativeLoopInbox;
  readonly #batch: Uint32Array<ArrayBuffer>;
  readonly #row: Row;
  /** By socket. Several when parts of the program share it: they get connections in turn. */
  readonly #handles: ListenHandle[][] = Array.from({ length: maxSockets }, () => []);
  /** Handles that get a connection only when no other is left for it. */
  readonly #quieted = new Set<ListenHandle>();
  readonly #pendingListens = new Map<number, (answer: ListenAnswer) => void>();
  readonly #drain: Drain;
  readonly #leases: Leases;
  readonly #member: Member;
  readonly #threads: LoopThreads;
  /** Set by programs of manycore itself. */
  #program: LoopProgram | undefined;
  #hasProgramLeft = false;
  #requests = 0;
  #bytesWritten = 0;
  #isReady = false;
  /** True: the program exports nothing that could listen, so it has to listen by itself. */
  #listensItself = false;

  /** Throws `NATIVE_MISSING`. */
  constructor(options: LoopOptions) {
    const native = requireNative();
    this.#options = options;
    const { acceptorKey, index } = options;
    this.#inbox = callNative(() => new native.NativeLoopInbox(acceptorKey, index, this.#deliver));
    this.#batch = new Uint32Array(this.#inbox.batch());
    this.#row = new Row(this.#inbox.board(), options.process, index);
    this.#row.set(boardAt.limit, options.app.maxConnections);
    this.#row.state = 'starting';
    const stats = { server: process.ppid, process: options.process, loop: index };
    this.#unregister = addSource('servedLoop', this, () => stats);
    this.#drain = new Drain(
      new Connections(this.#row),
      () => this.#hasProgramLeft && this.#row.get(boardAt.open) === 0 && this.#inbox.tryLeave(),
      () => finishWork(() => this.#end()),
    );
    const { up, activeLeasesFd } = options;
    this.#leases = new Leases({ count: options.app.workers, activeLeasesFd, up });
    useSharedWorkers(this.#leases);
    this.#member = new Member(up);
    this.#threads = new LoopThreads(up);
    setProgramLoop({
      index,
      join: (onMember) => this.#member.join(onMember),
      startThread: (entry, data) => this.#threads.start(entry.href, data),
      ready: () => this.#ready(),
      failed: this.#failed,
      attend: (program) => {
        this.#program = program;
      },
      quiet: (server) => this.#quiet(server),
    });
  }

  /** Runs the program, and reports what it throws to the process. */
  async start(): Promise<void> {
    takeOverListening(this.#hooks, this.#row.number + 1);
    const { app } = this.#options;
    if (app.isPortGiven) process.env['PORT'] = String(app.port);
    process.env['MANYCORE_CORES'] ??= String(app.coresPerLoop);
    try {
      const exported = await loadApp(app);
      // A program that does not listen yet may do so later: the supervisor waits for it.
      if (this.#requests === 0) {
        listenForExport(() => {
          const isExported = listenWith(exported, app, this.#failed);
          this.#listensItself = !isExported;
          return isExported;
        });
      } else refuseUnused(app);
    } catch (error) {
      this.#failed(error);
    }
  }

  readonly #failed = (error: unknown): void => {
    this.#post({ type: 'failed', error: travelled(error) });
  };

  #post(body: FromLoop): void {
    this.#options.up.post({ body });
  }

  /** Handles a message of the process, or of the supervisor. */
  readonly receive = (envelope: ArrivedEnvelope): void => {
    const message = parseToLoop(envelope);
    switch (message.type) {
      case 'answer':
        this.#pendingListens.get(message.id)?.(message.answer);
        this.#pendingListens.delete(message.id);
        break;
      case 'granted':
      case 'leaseEnded':
        this.#leases.receive(message);
        break;
      case 'members':
      case 'offered':
      case 'left':
        this.#member.receive(message);
        break;
      case 'returned':
        if (message.body.type === 'acquire') this.#leases.receive(message);
        else this.#member.receive(message);
        break;
      case 'threadEnded':
        this.#threads.receive(message);
        break;
      case 'orphaned':
        this.#leases.orphaned();
        this.#member.orphaned();
        break;
      case 'drain':
        this.#leave(message.deadlineMs);
        break;
    }
  };

  #leave(deadlineMs: number): void {
    this.#row.state = 'draining';
    this.#inbox.wake();
    const left = (): void => {
      this.#hasProgramLeft = true;
      this.#drain.noteClosed();
    };
    Promise.resolve(this.#program?.onDrain(deadlineMs)).then(left, left);
    this.#drain.begin(deadlineMs);
  }

  readonly #hooks: ListenHooks = {
    requestListen: (query) => {
      if (this.#listensItself) refuseUnused(this.#options.app); // thrown where it calls listen()
      return this.#requestListen(query);
    },
    onListening: (handle, server) => this.#listening(handle, server),
    onClose: (handle) => this.#closed(handle),
    onConnectionClosed: (bytesWritten) => {
      this.#row.add(boardAt.open, -1);
      this.#bytesWritten += bytesWritten;
      this.#row.set(boardAt.kibWritten, this.#bytesWritten / 1024);
      this.#drain.noteClosed();
    },
    onRef: () => this.#hold(),
    ownerOf: (server) => (server instanceof NetServer ? this.#program?.ownerOf(server) : undefined),
  };

  #requestListen(query: ListenQuery): Promise<ListenAnswer> {
    this.#requests += 1;
    const request = this.#requests;
    return new Promise((resolve) => {
      this.#pendingListens.set(request, resolve);
      this.#options.up.post({ id: request, body: { type: 'listen', query } });
    });
  }

  #listening(handle: ListenHandle, server: unknown): void {
    this.#handles[handle.number]?.push(handle);
    if (server instanceof nodeHttp().Server) this.#row.or(boardAt.speaksHttp, 1 << handle.number);
    this.#drain.addServer(server);
    const { serverNames } = this.#options.app;
    const isShared = serverNames.length > 0 && handle.getsockname !== undefined;
    if (isShared) refuseMisdirected(server, serverNames);
    this.#publish();
    this.#hold();
    this.#ready();
  }

  #ready(): void {
    if (this.#isReady) return;
    this.#isReady = true;
    this.#post({ type: 'ready' });
  }

  /** As `ProgramLoop.quiet`. */
  async #quiet(server: NetServer): Promise<void> {
    this.#drain.quiet(server);
    const handle = this.#handles.flat().find((each) => each.serves(server));
    if (handle === undefined) return;
    const { number } = handle;
    this.#quieted.add(handle);
    this.#publish();
    // Takes connections that were placed meanwhile in the next turns, unless another server listens there.
    while (!this.#isWanted(number) && !this.#inbox.isDoneWith(number)) await setImmediate();
  }

  /** True: a handle of this loop takes connections of a socket. */
  #isWanted(number: number): boolean {
    return this.#handles[number]?.some((each) => !this.#quieted.has(each)) === true;
  }

  #closed(handle: ListenHandle): void {
    const { number } = handle;
    this.#quieted.delete(handle);
    const others = this.#handles[number]?.filter((each) => each !== handle) ?? [];
    this.#handles[number] = others;
    if (others.length === 0) {
      const http = this.#row.get(boardAt.speaksHttp);
      this.#row.set(boardAt.speaksHttp, http & ~(1 << number)); // a number is used again
    }
    this.#publish();
    this.#hold();
    // Deferred, because another server may replace this one.
    process.nextTick(() => {
      if (this.#handles[number]?.length === 0) this.#post({ type: 'unlisten', number });
    });
  }

  /** Publishes to the listener thread from which sockets this loop takes connections. */
  #publish(): void {
    let bits = 0;
    for (const number of this.#handles.keys()) {
      if (this.#isWanted(number)) bits |= 1 << number;
    }
    this.#row.set(boardAt.listens, bits);
    this.#inbox.wake();
  }

  #hold(): void {
    this.#inbox.hold(this.#handles.some((handles) => handles.some((each) => each.hasRef())));
  }

  readonly #deliver = (): void => {
    const count = this.#batch[0] ?? 0;
    // Copied first: an error in a connection's listener must not lose the others.
    const entries = this.#batch.slice(1, 1 + count * entryWords);
    this.#batch[0] = 0;
    for (let at = 0; at < entries.length; at += entryWords) {
      const [number = 0, fd = -1] = entries.subarray(at, at + entryWords);
      this.#connect(number, fd);
    }
  };

  #connect(number: number, fd: number): void {
    const handle = this.#nextHandle(number);
    if (handle === undefined) {
      // The program has closed the server since this was placed.
      closeSync(fd);
      this.#hooks.onConnectionClosed(0);
      return;
    }
    try {
      handle.connect(fd);
    } catch (error) {
      process.nextTick(() => {
        throw error;
      });
    }
  }

  /** Returns the first handle that takes connections, and moves it to the end of the row. */
  #nextHandle(number: number): ListenHandle | undefined {
    const handles = this.#handles[number] ?? [];
    if (handles.length < 2) return handles[0];
    const at = handles.findIndex((each) => !this.#quieted.has(each));
    const [next] = handles.splice(Math.max(at, 0), 1);
    if (next !== undefined) handles.push(next);
    return next;
  }

  #end(): void {
    this.#unregister();
    this.#inbox.close();
    this.#row.state = 'free';
    this.#post({ type: 'drained' });
    this.#options.onDrained();
  }
}
