// Takes the stack of a blocked loop: another thread of its process uses the inspector, which interrupts
// JavaScript. The interrupted thread continues afterwards.

import { type NodeWorker, Session } from 'node:inspector';

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
interface InspectorEvent {
  readonly method?: unknown;
  readonly params?: {
    readonly scriptId?: unknown;
    readonly url?: unknown;
    readonly callFrames?: readonly Frame[];
  };
}

/** Connection to one thread. */
interface Connection {
  post(method: string): void;
  onEvent(listener: (event: InspectorEvent) => void): void;
}

/**
 * Takes the stack of a worker thread, from the main thread: innermost first, as lines of `Error.stack`; `undefined`
 * when that fails. Never rejects.
 */
export function stackOfThread(threadId: number): Promise<string | undefined> {
  return takeStack((session, onConnected) => {
    session.connect();
    session.on('NodeWorker.attachedToWorker', ({ params }) => {
      if (isThread(params, threadId)) onConnected(connectionToThread(session, params.sessionId));
    });
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  });
}

/** Takes the stack of the main thread, from a worker thread. */
export function stackOfMainThread(): Promise<string | undefined> {
  return takeStack((session, onConnected) => {
    session.connectToMainThread();
    onConnected({
      post: (method) => session.post(method),
      onEvent: (listener) => session.on('inspectorNotification', listener),
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

/** Compares the thread id in the title of a worker thread: "Worker 3", "[worker 3] name". */
function isThread(
  { workerInfo }: NodeWorker.AttachedToWorkerEventDataType,
  threadId: number,
): boolean {
  return /\d+/.exec(workerInfo.title)?.[0] === String(threadId);
}

function connectionToThread(session: Session, sessionId: string): Connection {
  let id = 0;
  return {
    post(method) {
      id += 1;
      const message = JSON.stringify({ id, method });
      session.post('NodeWorker.sendMessageToWorker', { sessionId, message });
    },
    onEvent(listener) {
      session.on('NodeWorker.receivedMessageFromWorker', ({ params: { message, ...from } }) => {
        if (from.sessionId === sessionId) listener(Object(JSON.parse(message)));
      });
    },
  };
}

function interrupt(connection: Connection, onStack: (stack: string) => void): void {
  /** Files of scripts, by id; their events come before all others. */
  const urls = new Map<unknown, unknown>();
  connection.onEvent(({ method, params = {} }) => {
    if (method === 'Debugger.scriptParsed') urls.set(params.scriptId, params.url);
    if (method !== 'Debugger.paused') return;
    connection.post('Debugger.resume');
    const frames = (params.callFrames ?? []).slice(0, maxFrames);
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
