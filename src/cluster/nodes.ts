// Who else is in the cluster. A node says so every other second, and when it leaves; one that is silent is
// asked, and where the NATS server says that nobody is there (its connection has ended), and nothing is heard
// until the next beat, it has left. Anybody can say so who speaks to the server: nobody who is heard goes by it.
// There is no registry: who comes asks all, and all answer.
//
// Nodes of another version, or with another secret, cannot understand each other: the one that came later
// leaves, and says whom it met. Not here: the bus (peer.ts).

import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import type { CodedError } from '../errors.js';
import { announcements, messageOf, packageVersion } from '../internal/index.js';
import { refused } from './errors.js';
import { follow, listen } from './listen.js';
import type { Connected, NatsConnection, NatsMessage } from './nats.js';
import {
  type NodeMessage,
  parseNode,
  protocolVersion,
  signatureBytes,
  writeNode,
} from './protocol.js';
import { maxAgeMs, type Signer, verified } from './signature.js';
import { Subjects } from './subjects.js';

const beatMs = 2000;
/**
 * Unheard for more beats than this it is asked, and has left: within 6 and 16 seconds. Beats of this node: while
 * its own event loop is blocked it hears nobody, and has none.
 */
const probeAfterBeats = 2;
const maxSilentBeats = 7;
/** So long a node that has come listens to others who say that it must not be there, in ms. */
const joiningMs = 10_000;

const signatureTarget = 'node';

/** A program in the cluster, with all its loops. */
export interface ClusterNode {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Of manycore. */
  readonly version: string;
}

interface NodeEvents {
  join: [ClusterNode];
  leave: [ClusterNode];
  /** This node must leave. */
  refused: [CodedError];
}

interface Known extends ClusterNode {
  /** Beats since it was heard. */
  silentBeats: number;
  /** A server has said that nobody is there, since it was heard. */
  isAbsent: boolean;
}

export class Nodes extends EventEmitter<NodeEvents> {
  readonly own: ClusterNode;
  readonly #connection: NatsConnection;
  readonly #inbox: string;
  readonly #subjects: Subjects;
  readonly #signer: Signer | undefined;
  readonly #startedAt = Date.now();
  readonly #known = new Map<string, Known>();
  #timer: NodeJS.Timeout | undefined;

  constructor(
    id: string,
    name: string,
    { connection, inbox }: Connected,
    signer: Signer | undefined,
  ) {
    super();
    this.own = { id, host: hostname(), pid: process.pid, version: packageVersion() };
    this.#connection = connection;
    this.#inbox = `${inbox}.node`;
    this.#subjects = new Subjects(name);
    this.#signer = signer;
  }

  /** All others, the longest known first. */
  get others(): ClusterNode[] {
    return [...this.#known.values()].map(({ id, host, pid, version }) => {
      return { id, host, pid, version };
    });
  }

  /** Resolves when the servers have heard of this node; the others answer when they do. */
  async join(): Promise<void> {
    const connection = this.#connection;
    listen(connection, this.#subjects.nodes, this.#receive);
    listen(connection, this.#subjects.node(this.own.id), this.#receive);
    listen(connection, `${this.#inbox}.*`, this.#receiveNobody);
    follow(connection, ({ type }) => {
      if (type === 'reconnect') this.#resetSilence();
    });
    this.#announce('joined', this.#subjects.nodes);
    this.#timer = setInterval(this.#beat, beatMs).unref();
    await this.#connection.flush();
  }

  /** While there was no connection nobody could be heard. */
  #resetSilence(): void {
    for (const each of this.#known.values()) markAlive(each);
    this.#announce('joined', this.#subjects.nodes);
  }

  #announce(type: NodeMessage['type'], subject: string, reply?: string): void {
    const { id, host, pid, version } = this.own;
    const startedAt = this.#startedAt;
    const isSigned = this.#signer !== undefined;
    const own = { type, node: id, host, pid, version, protocol: protocolVersion, startedAt };
    const message = writeNode({ ...own, time: Date.now(), isSigned });
    const bytes = isSigned ? Buffer.concat([message, Buffer.alloc(signatureBytes)]) : message;
    this.#signer?.sign(bytes, signatureTarget);
    try {
      this.#connection.publish(subject, bytes, reply === undefined ? undefined : { reply });
    } catch {
      // the connection is being closed
    }
  }

  readonly #receive = ({ data }: NatsMessage): void => {
    let message: NodeMessage;
    try {
      message = parseNode(data);
    } catch (error) {
      announcements.clusterRefused.publish({ why: messageOf(error) });
      return;
    }
    const { type, node } = message;
    if (node === this.own.id) return;
    if (type === 'joined') this.#announce('welcome', this.#subjects.node(node));
    const why = this.#differenceTo(message, data);
    if (why !== undefined) this.#refuseStranger(message, why);
    else if (Math.abs(Date.now() - message.time) > maxAgeMs)
      return; // somebody says it again
    else if (type === 'left') this.#forget(node);
    else this.#note(message);
  };

  #note({ node: id, host, pid, version }: NodeMessage): void {
    const known = this.#known.get(id);
    if (known !== undefined) {
      markAlive(known);
      return;
    }
    this.#known.set(id, { id, host, pid, version, silentBeats: 0, isAbsent: false });
    this.emit('join', { id, host, pid, version });
  }

  #forget(id: string): void {
    const known = this.#known.get(id);
    if (known === undefined) return;
    this.#known.delete(id);
    const { host, pid, version } = known;
    this.emit('leave', { id, host, pid, version });
  }

  /** Why this node and that one cannot be in one cluster. */
  #differenceTo(
    { host, pid, version, protocol, isSigned }: NodeMessage,
    data: Uint8Array,
  ): string | undefined {
    const what = `the node at ${host}, process ${pid},`;
    if (protocol !== protocolVersion) {
      const ours = `this one manycore ${this.own.version}`;
      return `${what} runs manycore ${version}, ${ours}: they do not understand each other`;
    }
    if (this.#signer === undefined ? !isSigned : this.#isOurs(data, this.#signer)) return undefined;
    return `${what} has another secret: give the same cluster({ secret }) to all nodes, or to none`;
  }

  #isOurs(data: Uint8Array, signer: Signer): boolean {
    try {
      verified(signer, data, signatureTarget);
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Of the two the one that came later leaves, if it has just come: anybody who reaches the server can say
   * such things.
   */
  #refuseStranger({ startedAt, node }: NodeMessage, why: string): void {
    announcements.clusterRefused.publish({ why });
    const isEarlier =
      startedAt < this.#startedAt || (startedAt === this.#startedAt && node < this.own.id);
    const isJoining = Date.now() - this.#startedAt < joiningMs;
    if (isEarlier && isJoining) this.emit('refused', refused(why));
  }

  readonly #beat = (): void => {
    if (this.#connection.isClosed()) return;
    this.#announce('alive', this.#subjects.nodes);
    for (const known of [...this.#known.values()]) {
      known.silentBeats += 1;
      const { id, silentBeats, isAbsent } = known;
      if (isAbsent || silentBeats > maxSilentBeats) this.#forget(id);
      else if (silentBeats > probeAfterBeats) {
        this.#announce('joined', this.#subjects.node(id), `${this.#inbox}.${id}`);
      }
    }
  };

  /** A server says that nobody is where a node was asked, or somebody else does. */
  readonly #receiveNobody = ({ subject, data, headers }: NatsMessage): void => {
    if (data.byteLength > 0 || headers?.code !== 503) return;
    const known = this.#known.get(subject.slice(this.#inbox.length + 1));
    if (known !== undefined) known.isAbsent = known.silentBeats > probeAfterBeats;
  };

  leave(): void {
    clearInterval(this.#timer);
    if (!this.#connection.isClosed()) this.#announce('left', this.#subjects.nodes);
  }
}

function markAlive(known: Known): void {
  known.silentBeats = 0;
  known.isAbsent = false;
}
