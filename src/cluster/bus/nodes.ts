// Membership of the cluster, without a registry. Every node announces itself every other second and when it
// leaves; a new node announces itself, and all answer. A silent node is probed. It has left when the NATS server
// reports no subscriber (its connection has ended) and no message arrives before the next beat. Such a
// report can be forged by anyone with access to the server, so it never removes a node that still sends.
//
// Nodes of another version or with another secret are incompatible: the later one leaves, and names the
// node that it met. With a secret only a signed message makes a node leave. Any other one is reported, since
// a node cannot distinguish a forger from a node with another secret. Not here: the bus (peer.ts).

import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import type { CodedError } from '../../errors.js';
import { announcements, messageOf, packageVersion } from '../../lib/index.js';
import { refused } from '../errors.js';
import { follow, listen } from '../nats/listen.js';
import type { Connected, NatsConnection, NatsMessage } from '../nats/nats.js';
import { Subjects } from '../nats/subjects.js';
import {
  type NodeMessage,
  parseNode,
  protocolVersion,
  signatureBytes,
  writeNode,
} from '../protocol.js';
import { Refusals } from './refusals.js';
import { maxAgeMs, type Signer, verified, wrongTime } from './signature.js';

const beatMs = 2000;
/**
 * Silent beats after which a node is probed, and after which it has left: 6 and 16 seconds. Beats are those
 * of this node: while its own event loop is blocked, it receives nothing and counts nothing.
 */
const probeAfterBeats = 2;
const maxSilentBeats = 7;
/** Time after the start in which a node accepts objections of other nodes, in ms. */
const joiningMs = 10_000;

const signatureTarget = 'node';

/** A program in the cluster, including all its loops. */
export interface ClusterNode {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Version of manycore. */
  readonly version: string;
}

export interface NodeEvents {
  join: [ClusterNode];
  leave: [ClusterNode];
  /** This node is incompatible and must leave. */
  refused: [CodedError];
}

interface Known extends ClusterNode {
  /** Beats since the last message of the node. */
  silentBeats: number;
  /** True: since its last message a server has reported no subscriber. */
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
  readonly #refusals = new Refusals();
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

  /** All other nodes, in the order in which they became known. */
  get others(): ClusterNode[] {
    return [...this.#known.values()].map(({ id, host, pid, version }) => {
      return { id, host, pid, version };
    });
  }

  /** Resolves when the servers have received the announcement; the other nodes answer later. */
  async join(): Promise<void> {
    const connection = this.#connection;
    listen(connection, this.#subjects.nodes, this.#receive);
    listen(connection, this.#subjects.node(this.own.id), this.#receive);
    listen(connection, `${this.#inbox}.*`, this.#receiveNobody);
    follow(connection, ({ type }) => {
      if (type === 'reconnect') this.#resetLiveness();
    });
    this.#announce('joined', this.#subjects.nodes);
    this.#timer = setInterval(this.#beat, beatMs).unref();
    await this.#connection.flush();
  }

  /** Counts the time without messages anew after a reconnect: without a connection no message could arrive. */
  #resetLiveness(): void {
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
    if (type === 'joined') this.#announce('present', this.#subjects.node(node));
    if (!this.#isTrusted(message, data)) this.#refuseSecret(message);
    else if (Math.abs(Date.now() - message.time) > maxAgeMs) this.#refuseTime(message);
    else if (message.protocol !== protocolVersion) this.#refuseVersion(message);
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

  /** Returns true for a message with the secret of this node, or without one where it has none itself. */
  #isTrusted({ isSigned }: NodeMessage, data: Uint8Array): boolean {
    if (this.#signer === undefined) return !isSigned;
    try {
      verified(this.#signer, data, signatureTarget);
      return true;
    } catch {
      return false;
    }
  }

  #refuseSecret(message: NodeMessage): void {
    const wayOut = 'give the same cluster({ secret }) to all nodes, or to none';
    const why = `${nameOf(message)}, has another secret: ${wayOut}`;
    if (this.#signer !== undefined || !this.#leaveIfLater(message, why)) {
      this.#refusals.report(why, why);
    }
  }

  /** The clock of a node differs, or somebody sends an old announcement again. */
  #refuseTime(message: NodeMessage): void {
    const what = `an announcement of ${nameOf(message)}`;
    this.#refusals.report(`clock ${message.node}`, wrongTime(what, Date.now() - message.time));
  }

  #refuseVersion(message: NodeMessage): void {
    const ours = `this one manycore ${this.own.version}`;
    const what = `${nameOf(message)}, runs manycore ${message.version}, ${ours}`;
    const why = `${what}: these versions are incompatible`;
    if (!this.#leaveIfLater(message, why)) this.#refusals.report(why, why);
  }

  /**
   * Makes the later of two incompatible nodes leave, and only while it is joining: without a secret anyone
   * with access to the server can forge such messages. Returns true when this node leaves.
   */
  #leaveIfLater({ startedAt, node }: NodeMessage, why: string): boolean {
    const isEarlier =
      startedAt < this.#startedAt || (startedAt === this.#startedAt && node < this.own.id);
    const isJoining = Date.now() - this.#startedAt < joiningMs;
    if (!isEarlier || !isJoining) return false;
    announcements.clusterRefused.publish({ why });
    this.emit('refused', refused(why));
    return true;
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

  /** Handles the server's report (503) that a probed node has no subscriber; it may be forged. */
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

function nameOf({ host, pid }: NodeMessage): string {
  return `the node at ${host}, process ${pid}`;
}

function markAlive(known: Known): void {
  known.silentBeats = 0;
  known.isAbsent = false;
}
