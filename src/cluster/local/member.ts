// A loop on the local bus: it listens on a socket in the folder of the bus, and has a link to each loop of the
// other programs there, as to those of its own. A new member connects to all that are there; so two that start at
// once both try. The one with the smaller id goes on then, and the other one is answered that it is connected.
//
// The channel is shared memory, whose descriptors come over the connection, or the connection itself where one of
// the two has no native core. Not here: the lines before (greeting.ts), the sockets (folder.ts).

import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { writeSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { hostname } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { BusLink, type EventBus } from '../../bus/index.js';
import {
  acceptFromProgram,
  type ChannelEnd,
  offerToProgram,
  overStream,
} from '../../channels/index.js';
import {
  announcements,
  beforeDeadline,
  defer,
  messageOf,
  nodeNet,
  packageVersion,
} from '../../lib/index.js';
import { nativeBinding } from '../../native.js';
import type { ClusterNode, NodeEvents } from '../bus/nodes.js';
import { refused } from '../errors.js';
import { DescriptorInbox, sendDescriptors } from './descriptors.js';
import { BusFolder, removeSocket } from './folder.js';
import {
  type Greeting,
  localProtocol,
  memberId,
  objection,
  parseLine,
  readLine,
  writeLine,
} from './greeting.js';

/** Period after which the folder is read again, for connections that could not be made; in ms. */
const scanMs = 2000;
/** A member waits no longer than this, when it joins, for others that are busy; in ms. */
const announcementMs = 2000;
/** Time limits for the lines and descriptors of one that connects, and for what waits at the end; in ms. */
const greetingMs = 10_000;
const drainMs = 2000;
/** Member number of the program itself, among the loops of its node. */
const programMember = 0;

export interface MemberOptions {
  /** Name of the bus. */
  readonly name: string;
  /** Id of the program. */
  readonly node: string;
  readonly member: number;
}

/** A member that is expected to send descriptors. */
interface Expected {
  readonly inbox: DescriptorInbox;
  readonly greeting: Greeting;
  readonly timer: NodeJS.Timeout;
}

/** Emits `join` and `leave` of other programs: those with a link to this loop. */
export class LocalMember extends EventEmitter<NodeEvents> {
  readonly own: ClusterNode;
  /** Resolves after `close()`. */
  readonly closed: Promise<void>;
  readonly #closed = defer<void>();
  readonly #bus: EventBus;
  readonly #greeting: Greeting;
  readonly #id: string;
  readonly #folder: BusFolder;
  readonly #path: string;
  readonly #server: Server;
  readonly #nodes = new Map<string, ClusterNode>();
  /** By id of the other member, as the next two. */
  readonly #links = new Map<string, BusLink>();
  /** Connections from here that are not links yet. */
  readonly #attempts = new Map<string, Socket>();
  /** Members whose connection is to come, while this one joins. */
  readonly #awaited = new Map<string, () => void>();
  readonly #expected = new Map<string, Expected>();
  /** Connections that have not sent their line. */
  readonly #unread = new Set<Socket>();
  #timer: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;

  private constructor(bus: EventBus, { name, node, member }: MemberOptions) {
    super();
    const host = hostname();
    const version = packageVersion();
    this.closed = this.#closed.promise;
    this.own = { id: node, host, pid: process.pid, version };
    this.#bus = bus;
    const sharesMemory = nativeBinding() !== undefined;
    const { pid } = process;
    const protocol = localProtocol;
    this.#greeting = { protocol, version, name, node, member, host, pid, sharesMemory };
    this.#id = memberId(this.#greeting);
    this.#folder = new BusFolder(name);
    this.#path = this.#folder.pathOf(this.#id, pid);
    this.#server = nodeNet().createServer((socket) => void this.#accept(socket));
  }

  /**
   * Resolves when the members that are there have announced their consumers. Rejects with
   * `RUNTIME_FOLDER_REFUSED`, `CLUSTER_REFUSED`.
   */
  static async join(bus: EventBus, options: MemberOptions): Promise<LocalMember> {
    const joined = new LocalMember(bus, options);
    try {
      await joined.#join();
      return joined;
    } catch (error) {
      await joined.close();
      throw error;
    }
  }

  async #join(): Promise<void> {
    await this.#folder.listen(this.#server, this.#path);
    this.#server.on('error', (error) => report(messageOf(error)));
    const deadline = new AbortController();
    const { signal } = deadline;
    const late = wait(announcementMs, undefined, { signal }).catch(() => {});
    try {
      await Promise.race([this.#connectAll(), late]);
      await Promise.race([this.#announced(), late]);
    } finally {
      deadline.abort();
    }
    this.#timer = setInterval(() => void this.#connectAll(), scanMs).unref();
    for (const resolve of this.#awaited.values()) resolve();
  }

  async #announced(): Promise<void> {
    await Promise.all([...this.#links.values()].map((link) => link.announced));
  }

  /** Programs with a link to this loop, in the order in which they came. */
  get others(): ClusterNode[] {
    return [...this.#nodes.values()];
  }

  get #isJoining(): boolean {
    return this.#timer === undefined;
  }

  /** Connects to those members that are not connected. Rejects while it joins if one refuses this program. */
  async #connectAll(): Promise<void> {
    if (this.#closing !== undefined) return;
    const connecting: Promise<void>[] = [];
    for (const [id, path] of this.#members()) {
      const isOwn = id.startsWith(`${this.#greeting.node}-`);
      if (isOwn || this.#isConnected(id) || this.#attempts.has(id)) continue;
      connecting.push(this.#connect(id, path));
    }
    await Promise.all(connecting);
  }

  #members(): ReadonlyMap<string, string> {
    try {
      return this.#folder.members();
    } catch (error) {
      report(messageOf(error)); // the folder was removed
      return new Map();
    }
  }

  #isConnected(id: string): boolean {
    if (this.#links.has(id)) return true;
    for (const { greeting } of this.#expected.values()) if (memberId(greeting) === id) return true;
    return false;
  }

  async #connect(id: string, path: string): Promise<void> {
    const socket = nodeNet().connect(path);
    this.#attempts.set(id, socket);
    socket.on('error', (error) => {
      if (Object(error).code === 'ECONNREFUSED') removeSocket(path); // of a process that was killed
    });
    try {
      socket.write(writeLine({ type: 'hello', greeting: this.#greeting }));
      const text = await readLine(socket);
      if (text === undefined || this.#closing !== undefined) return;
      const answer = parseLine(text);
      if (answer.type === 'refused') throw refused(answer.why);
      if (answer.type === 'connected') {
        this.#attempts.delete(id); // the other one connects, and has to be accepted
        socket.destroy();
        if (this.#isJoining) await this.#linked(id);
      }
      if (answer.type !== 'welcome') return;
      const { greeting, token } = answer;
      this.#open(greeting, token === undefined ? channelOver(socket) : offer(socket, path, token));
      if (token === undefined) this.#attempts.delete(id);
    } catch (error) {
      if (this.#isJoining) throw error;
      report(messageOf(error));
    } finally {
      if (this.#attempts.delete(id)) socket.destroy();
    }
  }

  /** Resolves when this member is connected, which connects itself. */
  async #linked(id: string): Promise<void> {
    if (this.#links.has(id)) return;
    await new Promise<void>((resolve) => this.#awaited.set(id, resolve));
  }

  async #accept(socket: Socket): Promise<void> {
    this.#unread.add(socket);
    socket.on('error', () => socket.destroy());
    const timer = setTimeout(() => socket.destroy(), greetingMs).unref();
    const text = await readLine(socket);
    clearTimeout(timer);
    this.#unread.delete(socket);
    try {
      const line = text === undefined ? undefined : parseLine(text);
      if (line?.type === 'hello' && this.#closing === undefined)
        this.#greeted(socket, line.greeting);
      else socket.destroy();
      if (line?.type === 'sent') this.#receive(line.token);
    } catch (error) {
      socket.destroy();
      report(messageOf(error));
    }
  }

  #greeted(socket: Socket, greeting: Greeting): void {
    const why = objection(greeting, this.#greeting.name);
    const id = memberId(greeting);
    if (why !== undefined) {
      report(why);
      socket.end(writeLine({ type: 'refused', why: this.#objectionFor(greeting) ?? why }));
    } else if (this.#isConnected(id) || (this.#attempts.has(id) && this.#id < id)) {
      socket.end(writeLine({ type: 'connected' }));
    } else if (greeting.sharesMemory && this.#greeting.sharesMemory) {
      this.#expect(socket, greeting);
    } else {
      socket.write(writeLine({ type: 'welcome', greeting: this.#greeting }));
      this.#open(greeting, channelOver(socket));
    }
  }

  /** Returns the same, as the other one has to read it. */
  #objectionFor({ protocol, name, version }: Greeting): string | undefined {
    const own = protocol === localProtocol ? this.#greeting : { ...this.#greeting, protocol: -1 };
    return objection(own, name, version);
  }

  #expect(socket: Socket, greeting: Greeting): void {
    const inbox = new DescriptorInbox(socket);
    const token = randomBytes(8).toString('hex');
    const timer = setTimeout(() => this.#take(token)?.inbox.close(), greetingMs).unref();
    this.#expected.set(token, { inbox, greeting, timer });
    try {
      writeSync(inbox.fd, writeLine({ type: 'welcome', greeting: this.#greeting, token }));
    } catch (error) {
      this.#take(token)?.inbox.close();
      if (Object(error).code !== 'EPIPE') throw error; // else it has ended since
    }
  }

  #take(token: string): Expected | undefined {
    const expected = this.#expected.get(token);
    this.#expected.delete(token);
    clearTimeout(expected?.timer);
    return expected;
  }

  #receive(token: string): void {
    const expected = this.#take(token);
    if (expected === undefined) return;
    const { inbox, greeting } = expected;
    try {
      this.#open(greeting, acceptFromProgram(inbox.receive(), inbox.release));
    } finally {
      inbox.close();
    }
  }

  #open(greeting: Greeting, end: ChannelEnd): void {
    const id = memberId(greeting);
    const link = new BusLink(this.#bus, end, { isOfOtherProgram: true });
    this.#links.set(id, link);
    link.ref(); // an end without waiting requests would sleep at once, and wake late
    this.#awaited.get(id)?.();
    const { node, host, pid, version, member } = greeting;
    const found = { id: node, host, pid, version };
    const isProgram = member === programMember;
    if (isProgram) this.#nodes.set(node, found);
    void link.closed.then(() => {
      this.#links.delete(id);
      const isKnown = isProgram && this.#nodes.delete(node);
      if (isKnown && this.#closing === undefined) this.emit('leave', found); // else this one leaves
      void this.#connectAll().catch(() => {}); // removes the socket of one that was killed
    });
    if (isProgram) this.emit('join', found);
  }

  /** Resolves at once: consumers are announced in the order of messages, and no server is between. */
  async flush(): Promise<void> {}

  leave(): void {}

  /** Sends what waits, and leaves. A second call resolves with the first. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearInterval(this.#timer);
    removeSocket(this.#path);
    this.#server.close();
    for (const socket of [...this.#unread, ...this.#attempts.values()]) socket.destroy();
    for (const token of this.#expected.keys()) this.#take(token)?.inbox.close();
    for (const resolve of this.#awaited.values()) resolve();
    const links = [...this.#links.values()];
    if (links.length > 0) await atMost(drainMs, this.#bus.drained());
    for (const link of links) link.close();
    await atMost(drainMs, Promise.all(links.map((link) => link.closed)));
    this.#closed.resolve();
  }
}

/** Waits for `work`, but no longer than `ms`. */
async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  const onDeadline = (): Error => new Error('another program is slow');
  await beforeDeadline(work, { deadlineMs: ms, onDeadline }).catch(() => {});
}

function channelOver(socket: Socket): ChannelEnd {
  const end = overStream(socket);
  socket.resume(); // from the next turn on: by then a link reads it
  return end;
}

/** Offers a channel to the member that has welcomed this one with `token`, and listens at `path`. */
function offer(socket: Socket, path: string, token: string): ChannelEnd {
  const { end, fds, closeFds } = offerToProgram();
  try {
    sendDescriptors(socket, fds);
  } catch (error) {
    end.channel.destroy();
    throw error;
  } finally {
    closeFds();
  }
  const second = nodeNet().connect(path);
  second.on('error', () => second.destroy()); // it has ended, and with it the bell
  second.end(writeLine({ type: 'sent', token }));
  return end;
}

function report(why: string): void {
  announcements.clusterRefused.publish({ why });
}
