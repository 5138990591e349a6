// Starts the peer of the conformance suite over a channel of the kind under test, and records what
// the channel tells. Whatever a test leaves behind is ended here when the test is over.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import {
  type Channel,
  type ChannelKind,
  type ChannelOffer,
  offerChannel,
  type SendOutcome,
} from '../../src/channels/index.js';
import { waitFor, withDeadline } from '../support/index.js';
import { type PeerData, writeBytes } from './peer.js';

export interface Subject {
  readonly kind: ChannelKind;
  readonly worker: 'process' | 'thread';
  /** True: the worker is not trusted, and shares no arena. */
  readonly isIsolated?: boolean;
}

interface Started {
  /** Resolves with the exit code; `null` after a signal. */
  readonly exited: Promise<number | null>;
  readonly pipe: Duplex | undefined;
  /** A process's number; `undefined` for a thread. */
  readonly pid: number | undefined;
  kill(): void;
  openGate(): void;
}

export interface Frame {
  readonly kind: number;
  readonly task: number;
  readonly target: number;
  readonly body: Buffer;
}

export interface Opened extends Started {
  readonly channel: Channel;
  readonly frames: Frame[];
  /** One entry for each call of `onClose`: the code, or what else it was. */
  readonly closes: string[];
  /** Waits for `full` to be over as often as needed; the channel must not close meanwhile. */
  send(kind: number, task?: number, target?: number, body?: Uint8Array): Promise<void>;
  frameCount(count: number): Promise<void>;
  closed(): Promise<string>;
}

const peerFile = new URL('./peer.js', import.meta.url);
const deadlineMs = 30_000;

function startProcess(offer: ChannelOffer, startsUnref: boolean): Started {
  const child = spawn(
    process.execPath,
    [fileURLToPath(peerFile), JSON.stringify(offer.ticket), startsUnref ? 'unref' : 'ref'],
    { stdio: ['pipe', 'inherit', 'inherit', ...offer.stdio] },
  );
  const pipe = child.stdio.find((stream, index) => index >= 3 && stream instanceof Duplex);
  return {
    exited: new Promise((resolve) => child.on('exit', resolve)),
    pipe: pipe instanceof Duplex ? pipe : undefined,
    pid: child.pid,
    kill: () => child.kill('SIGKILL'),
    openGate: () => child.stdin?.write('x'),
  };
}

function startThread(offer: ChannelOffer, startsUnref: boolean): Started {
  const gate = new SharedArrayBuffer(4);
  const data: PeerData = { ticket: offer.ticket, gate, startsUnref };
  const worker = new Worker(peerFile, { workerData: data, transferList: [...offer.transfer] });
  return {
    exited: new Promise((resolve) => worker.on('exit', resolve)),
    pipe: undefined,
    pid: undefined,
    kill: () => void worker.terminate(),
    openGate() {
      Atomics.store(new Int32Array(gate), 0, 1);
      Atomics.notify(new Int32Array(gate), 0);
    },
  };
}

/** A channel of this kind to a peer that runs. */
export function open(t: TestContext, subject: Subject, startsUnref = false): Opened {
  const { kind, worker, isIsolated = false } = subject;
  const offer = offerChannel(kind, { worker, spin: false, isIsolated });
  const started =
    worker === 'process' ? startProcess(offer, startsUnref) : startThread(offer, startsUnref);
  const end = offer.open(started.pipe);
  const { channel } = end;
  void started.exited.then(() => end.peerExited?.());
  t.after(async () => {
    channel.destroy();
    started.kill();
    await withDeadline(started.exited, deadlineMs, 'the peer is gone');
  });
  const frames: Frame[] = [];
  const closes: string[] = [];
  let drained = (): void => {};
  channel.handle({
    onFrame: (frameKind, task, target, body) => {
      frames.push({ kind: frameKind, task, target, body: body.copy(body.limit - body.position) });
    },
    onDrain: () => drained(),
    onClose: (error) => {
      closes.push(
        error === undefined ? 'orderly' : 'code' in error ? String(error.code) : error.message,
      );
    },
  });
  channel.ref();
  return {
    ...started,
    channel,
    frames,
    closes,
    async send(frameKind, task = 0, target = 0, body = Buffer.alloc(0)) {
      for (;;) {
        const room = new Promise<void>((resolve) => {
          drained = resolve;
        });
        const outcome: SendOutcome = channel.trySend(frameKind, task, target, writeBytes, body);
        if (outcome === 'sent') return;
        assert.equal(outcome, 'full');
        await withDeadline(room, deadlineMs, 'onDrain');
      }
    },
    frameCount: async (count) => {
      await waitFor(() => frames.length >= count, deadlineMs, `${count} frames`);
    },
    closed: () => waitFor(() => closes[0], deadlineMs, 'onClose'),
  };
}
