// Takes the stack of a blocked loop: another thread of its process uses the inspector, which interrupts
// JavaScript. The interrupted thread continues afterwards.

import { Session } from 'node:inspector';
import { attachToThread, type InspectorMessage } from '../../lib/index.js';

/** Limit for taking one stack, in ms: a thread in native code cannot be interrupted. */
const deadlineMs = 2000;
/** Interval of a timer in ms: messages of the main thread do not wake a sleeping thread (Node 20 to 26). */
const wakeEveryMs = 10;
const maxFrames = 20;
/** Limits URLs that contain the text of the file. */
const maxUrlCharacters = 500;

interface Frame {
  readonly functionName: string;
  readonly location: {
    readonly scriptId: string;
    readonly lineNumber: number;
    readonly columnNumber?: number;
  };
}

/** The fields that are used of `Debugger` events. */
interface DebuggerEvent {
  readonly scriptId?: unknown;
  readonly url?: unknown;
  readonly callFrames?: readonly Frame[];
}

/** Connection to one thread. */
interface Connection {
  post(method: string): void;
  onMessage(listener: (message: InspectorMessage) => void): void;
}

/**
 * Takes the stack of a worker thread, from the main thread: innermost first, as lines of `Error.stack`; `undefined`
 * when that fails. Never rejects.
 */
export function stackOfThread(threadId: number): Promise<string | undefined> {
  return takeStack((session, onConnected) => {
    session.connect();
    attachToThread(session, threadId, { onAttached: onConnected });
  });
}

/** Takes the stack of the main thread, from a worker thread. */
export function stackOfMainThread(): Promise<string | undefined> {
  return takeStack((session, onConnected) => {
    session.connectToMainThread();
    onConnected({
      post: (method) => session.post(method),
      onMessage: (listener) => session.on('inspectorNotification', listener),
    });
  });
}

async function takeStack(
  connect: (session: Session, onConnected: (connection: Connection) => void) => void,
): Promise<string | undefined> {
  const session = new Session();
  const awake = setInterval(() => {}, wakeEveryMs);
  let timer: NodeJS.Timeout | undefined;
  let found: Connection | undefined;
  try {
    return await new Promise<string | undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), deadlineMs);
      connect(session, (connection) => {
        found = connection;
        interrupt(connection, resolve);
      });
    });
  } catch {
    return undefined; // Node may not allow it (--permission)
  } finally {
    clearTimeout(timer);
    clearInterval(awake);
    // Otherwise a thread that was not interrupted yet would stop later, without a debugger.
    found?.post('Debugger.disable');
    session.disconnect();
  }
}

function interrupt(connection: Connection, onStack: (stack: string) => void): void {
  /** Files of scripts, by id; their events come before all others. */
  const urls = new Map<unknown, unknown>();
  connection.onMessage(({ method, params }) => {
    const { scriptId, url, callFrames = [] }: DebuggerEvent = { ...params };
    if (method === 'Debugger.scriptParsed') urls.set(scriptId, url);
    if (method !== 'Debugger.paused') return;
    connection.post('Debugger.resume');
    const frames = callFrames.slice(0, maxFrames);
    onStack(frames.map((frame) => lineOf(frame, urls)).join('\n'));
  });
  connection.post('Debugger.enable');
  connection.post('Debugger.pause');
}

function lineOf({ functionName, location }: Frame, urls: ReadonlyMap<unknown, unknown>): string {
  const { scriptId, lineNumber, columnNumber = 0 } = location;
  const url = String(urls.get(scriptId)).slice(0, maxUrlCharacters);
  return `    at ${functionName || '<anonymous>'} (${url}:${lineNumber + 1}:${columnNumber + 1})`;
}
