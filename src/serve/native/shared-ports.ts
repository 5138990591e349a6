// Ports that several apps of this process share: each has names of its own, and gets the connections of
// clients that request one of them (crates/core/src/accept/router.rs). The first app that listens on a
// port opens it, the last one that closes its server closes it. Also ports whose clients stay with one loop.
// Not here: the port itself, and how a successor takes it over (routed-port.ts).

import { closeSync } from 'node:fs';
import { callNative, type NativeBoard, requireNative } from '../../native.js';
import type { ListenQuery } from '../protocol.js';
import { errnoOf } from '../shared/errno.js';
import type { StickyKey } from '../sticky.js';
import type { OpenSocket } from '../supervisor/sockets.js';
import { type OpenedSocket, RoutedPort } from './routed-port.js';

/** An app's membership in a shared port. */
export interface JoinedPort
  extends Pick<OpenSocket, 'address' | 'ticketKeys' | 'handOut' | 'handOver'> {
  /** Source of its connections; closed by `leave`. Without sticky clients. */
  readonly fd: number;
  /** With sticky clients: source of the connections of one process, as listening socket `socket`. */
  ofProcess(process: number, socket: number): number;
  /** Sends nothing to the process any more; others get what it has not taken. */
  leaveProcess(process: number): void;
  leave(): void;
}

export interface JoinOptions {
  /** Names of the app; empty: it gets all clients, and shares no port. */
  readonly names: readonly string[];
  /** Set: each client stays with a loop of `board`. */
  readonly sticky: StickyKey | undefined;
  readonly board: NativeBoard;
}

interface SharedPort {
  readonly opened: Promise<RoutedPort>;
  /** Number of apps that use it, or are about to. */
  apps: number;
}

const addressInUse = errnoOf('EADDRINUSE');

const ports = new Map<string, SharedPort>();

/**
 * Joins the port that `query` asks for with these names; `open` makes its socket for the first app.
 * Rejects with the system's error: address in use, when another app has one of the names.
 */
export async function joinPort(
  query: ListenQuery,
  { names, sticky, board }: JoinOptions,
  open: () => Promise<OpenedSocket>,
): Promise<JoinedPort> {
  const port = portFor(query, open);
  port.apps += 1;
  const descriptors = new (requireNative().NativeDescriptors)();
  try {
    const routed = await port.opened;
    const { address, router, ticketKeys } = routed;
    // With port 0 each app gets a port of its own, which others may join by its number.
    if (typeof address !== 'string') ports.set(keyOf(query, address.port), port);
    const pair = (): readonly number[] => callNative(() => descriptors.createSocketPair());
    const release = (of: number): number => descriptors.release(of);
    const [near = -1, fd = -1] = sticky === undefined ? pair() : [];
    const route = callNative(() =>
      sticky === undefined
        ? router.add(names, release(near), release(descriptors.duplicate(fd)))
        : router.addSticky(names, board, sticky.kind, sticky.name),
    );
    if (route < 0) {
      const what = names.length === 0 ? 'the port' : `one of the names ${names.join(' ')}`;
      const error = new Error(`another app has ${what}`);
      throw Object.assign(error, { errno: addressInUse });
    }
    const processes = new Map<number, number>();
    const ofProcess = (process: number, socket: number): number => {
      const known = processes.get(process);
      if (known !== undefined) return known;
      const [ours = -1, theirs = -1] = pair();
      const copy = callNative(() => descriptors.duplicate(theirs));
      callNative(() => router.addProcess(route, process, socket, release(ours), release(copy)));
      processes.set(process, theirs);
      return theirs;
    };
    const leaveProcess = (process: number): void => {
      const theirs = processes.get(process);
      if (theirs === undefined) return;
      processes.delete(process);
      router.leave(route, process);
      closeSync(callNative(() => release(theirs)));
    };
    const leave = (): void => {
      router.remove(route);
      processes.clear(); // some may end later
      descriptors.closeAll();
      leavePort(port);
    };
    const handOut = () => routed.handOut();
    const handOver = () => routed.handOver();
    return { address, ticketKeys, fd, ofProcess, leaveProcess, handOut, handOver, leave };
  } catch (error) {
    descriptors.closeAll();
    leavePort(port);
    throw error;
  }
}

function portFor(query: ListenQuery, open: () => Promise<OpenedSocket>): SharedPort {
  const key = keyOf(query, query.port);
  const known = query.port > 0 ? ports.get(key) : undefined;
  if (known !== undefined) return known;
  const opened = open().then((socket) => new RoutedPort(socket));
  const port = { opened, apps: 0 };
  if (query.port > 0) ports.set(key, port);
  return port;
}

function keyOf({ address, addressType }: ListenQuery, port: number): string {
  return `${address}:${port}:${addressType}`;
}

function leavePort(port: SharedPort): void {
  port.apps -= 1;
  if (port.apps > 0) return;
  for (const [key, other] of ports) if (other === port) ports.delete(key);
  port.opened.then(
    (routed) => routed.close(),
    () => {}, // there is none
  );
}
