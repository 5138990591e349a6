// One event loop of a server: loads the program, receives the messages of its process and of the supervisor,
// and drains. The same in a thread and in a process's main thread. Not here: its servers and their connections
// (listen.ts).

import { addSource } from '../../agent/index.js';
import { setFileThread } from '../../http-apps/index.js';
import { keepTickShape } from '../../lib/index.js';
import { finishWork, useSharedWorkers } from '../../worker/index.js';
import { type ArrivedEnvelope, type FromLoop, parseToLoop, travelled } from '../protocol.js';
import { setSelf, stickyId } from '../self.js';
import { boardAt, type Row } from '../shared/board.js';
import type { Link } from '../shared/link.js';
import { portOfEnvironment } from '../shared/port-of-environment.js';
import type { Listenable } from '../shared/socket-handle.js';
import type { AppSettings, LoopSystem, Place } from '../tickets.js';
import { listenWith, loadApp, refuseUnused } from './app.js';
import { Candidate } from './candidate.js';
import { AccessLog } from './clients/access-log.js';
import { Connections } from './clients/connections.js';
import { Listening } from './clients/listen.js';
import { refuseMisdirected } from './clients/misdirected.js';
import { setStickyCookie } from './clients/sticky-cookie.js';
import { Drain } from './drain.js';
import { Leases } from './leases.js';
import { LoopThreads } from './loop-threads.js';
import { Member } from './member.js';
import { type LoopProgram, setProgramLoop } from './program-loop.js';
import { Readiness } from './readiness.js';
import { WorkingFolder } from './working-folder.js';

export interface LoopOptions {
  readonly process: number;
  readonly place: Place;
  readonly index: number;
  readonly system: LoopSystem;
  readonly app: AppSettings;
  /** To the process. */
  readonly up: Link<FromLoop>;
  /** Called before the first connection: its request may end the process. */
  readonly onFirstClient: (() => void) | undefined;
  /** Called when every connection is closed after a drain. */
  readonly onDrained: () => void;
}

export class Loop {
  readonly #options: LoopOptions;
  readonly #unregister: () => void;
  readonly #listening: Listening;
  /** Missing where no log is wanted. */
  readonly #access: AccessLog | undefined;
  readonly #row: Row;
  readonly #drain: Drain;
  /** Missing where each loop has workers of its own. */
  readonly #leases: Leases | undefined;
  readonly #member: Member;
  readonly #candidate: Candidate;
  readonly #threads: LoopThreads;
  readonly #folder: WorkingFolder;
  /** Set by programs of manycore itself. */
  #program: LoopProgram | undefined;
  #isLeaving = false;
  #hasProgramLeft = false;
  /** True: a server listens. */
  #hasServer = false;
  #isReady = false;

  /** Throws `NATIVE_MISSING`. */
  constructor(options: LoopOptions) {
    this.#options = options;
    const { up, process: number, place, index, system, app } = options;
    const { name, accessFormat: format } = app;
    const ofLog = { name, process: number, loop: index, up };
    this.#access = format === undefined ? undefined : new AccessLog({ ...ofLog, format });
    this.#listening = new Listening({
      ...options,
      onTake: this.#access?.take,
      onListening: (server, hasPort) => this.#listens(server, hasPort),
      onRefused: (error) => this.#failed(error),
      onAllAnswered: () => {
        if (this.#hasServer) this.#ready();
      },
      onConnectionClosed: () => this.#drain.noteClosed(),
    });
    this.#row = this.#listening.row;
    this.#row.set(boardAt.limit, app.maxConnections);
    this.#row.state = 'starting';
    const stats = { server: process.ppid, process: options.process, loop: index };
    this.#unregister = addSource('servedLoop', this, () => stats);
    this.#drain = new Drain(
      new Connections(this.#row, this.#listening.inbox.idle),
      () =>
        this.#hasProgramLeft &&
        this.#row.get(boardAt.open) === 0 &&
        this.#listening.inbox.tryLeave(),
      () => finishWork(() => this.#end()),
    );
    if (system.kind === 'native') {
      const { activeLeasesFd } = system;
      this.#leases = new Leases({ count: app.workers, activeLeasesFd, up });
      useSharedWorkers(this.#leases);
    }
    this.#member = new Member(up);
    this.#candidate = new Candidate(up);
    const instance = place.firstInstance + index;
    setSelf({
      row: this.#row.number,
      process: number,
      loop: index,
      instance,
      name: app.name,
      generation: place.generation,
      onlyOne: this.#candidate.add,
      readiness: new Readiness(up).add,
    });
    process.env['NODE_APP_INSTANCE'] = String(instance); // a thread has a copy of its own
    this.#threads = new LoopThreads(up);
    this.#folder = new WorkingFolder(up);
    setFileThread(this.#listening.inbox.files);
    setProgramLoop({
      index,
      join: (onMember) => this.#member.join(onMember),
      startThread: (entry, data) => this.#threads.start(entry.href, data),
      ready: () => this.#ready(),
      failed: this.#failed,
      attend: (program) => {
        this.#program = program;
        this.#listening.setOwners((server) => program.ownerOf(server));
      },
      quiet: async (server) => {
        this.#drain.quiet(server);
        await this.#listening.quiet(server);
      },
    });
  }

  /** Runs the program, and reports what it throws to the process. */
  async start(): Promise<void> {
    keepTickShape();
    this.#listening.takeOver();
    this.#folder.takeOver();
    const { app } = this.#options;
    if (app.isPortGiven) process.env['PORT'] = String(app.port);
    process.env['MANYCORE_CORES'] ??= String(app.coresPerLoop);
    try {
      const exported = await loadApp(app);
      // A program that does not listen yet may do so later: the supervisor waits for it.
      if (this.#listening.hasListened) refuseUnused(app);
      else {
        // Not the supervisor's: the program may have read variables from a file.
        const port = app.isPortGiven ? app.port : portOfEnvironment();
        const listen = () => listenWith(exported, { ...app, port }, this.#failed);
        this.#listening.listenForExport(listen);
      }
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
        this.#listening.receive(message.id, message.answer, socketIn(envelope));
        break;
      case 'granted':
      case 'leaseEnded':
        this.#leases?.receive(message);
        break;
      case 'members':
      case 'offered':
      case 'left':
        this.#member.receive(message);
        break;
      case 'returned':
        if (message.body.type === 'acquire') this.#leases?.receive(message);
        else this.#member.receive(message);
        break;
      case 'elected':
        this.#candidate.elected();
        break;
      case 'threadEnded':
        this.#threads.receive(message);
        break;
      case 'folderChanged':
        this.#folder.receive(message);
        break;
      case 'orphaned':
        this.#access?.close();
        this.#leases?.orphaned();
        this.#member.orphaned();
        break;
      case 'serve':
        this.#serve();
        break;
      case 'drain':
        this.#leave(message.deadlineMs, message.isReplaced);
        break;
    }
  };

  #serve(): void {
    try {
      this.#listening.inbox.begin();
      this.#post({ type: 'serving' });
    } catch (error) {
      this.#failed(error);
    }
  }

  #leave(deadlineMs: number, isReplaced: boolean): void {
    if (!this.#isLeaving) this.#beginLeaving(deadlineMs);
    this.#drain.begin(deadlineMs, isReplaced);
  }

  #beginLeaving(deadlineMs: number): void {
    this.#isLeaving = true;
    this.#row.state = 'draining';
    this.#listening.inbox.wake();
    this.#post({ type: 'left' });
    const left = (): void => {
      this.#hasProgramLeft = true;
      this.#drain.noteClosed();
    };
    const programLeft = Promise.resolve(this.#program?.onDrain(deadlineMs)).catch(() => {});
    void Promise.all([programLeft, this.#candidate.resign()]).then(left);
  }

  #listens(server: unknown, hasPort: boolean): void {
    this.#drain.addServer(server);
    this.#access?.watch(server);
    const { serverNames, stickyCookie: name } = this.#options.app;
    if (name !== undefined && hasPort) {
      const isLive = (row: number): boolean => this.#row.stateOf(row) === 'ready';
      setStickyCookie(server, { name, makeId: stickyId, isLive });
    }
    if (serverNames.length > 0 && hasPort) refuseMisdirected(server, serverNames);
    this.#hasServer = true;
    if (!this.#listening.isPending) this.#ready();
  }

  #ready(): void {
    if (this.#isReady) return;
    this.#isReady = true;
    this.#post({ type: 'ready' });
  }

  #end(): void {
    this.#unregister();
    this.#listening.inbox.close();
    this.#row.state = 'free';
    this.#access?.flush();
    this.#post({ type: 'drained' });
    this.#options.onDrained();
  }
}

/** Returns the listening socket of an answer, where the loop listens itself. */
function socketIn({ handle, fds: [fd] }: ArrivedEnvelope): Listenable | undefined {
  if (handle !== undefined) return { handle };
  return fd === undefined ? undefined : { fd };
}
