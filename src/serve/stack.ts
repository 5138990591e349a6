// Where a loop is while it does not come back: the stack of a thread, taken by another thread of its
// process through the inspector, which interrupts JavaScript. The interrupted thread goes on afterwards.

import { type NodeWorker, Session } from 'node:inspector';

/** For the whole conversation, in ms: a thread that is in native code cannot be interrupted. */
const deadlineMs = 2000;
/** What the main thread says does not wake a worker that sleeps (Node 20 to 26); a timer does, in ms. */
const wakeEveryMs = 10;
const maxFrames = 20;
/** A file may be a URL that holds its text. */
const maxUrlCharacters = 500;

interface Frame {
  readonly functionName: string;
  readonly location: {
    readonly scriptId: string;
    readonly lineNumber: number;
    readonly columnNumber?: number;
  };
}

/** What is read of the events of `Debugger`. */
interface InspectorEvent {
  readonly method?: unknown;
  readonly params?: {
    readonly scriptId?: unknown;
    readonly url?: unknown;
    readonly callFrames?: readonly Frame[];
  };
}

/** The way to one thread. */
interface Connection {
  post(method: string): void;
  onEvent(listener: (event: InspectorEvent) => void): void;
}

/**
 * For the main thread: the stack, innermost first, as lines of `Error.stack`; `undefined` where it cannot
 * be had. Never rejects.
 */
export function stackOfWorker(threadId: number): Promise<string | undefined> {
  return takeStack((session, onConnected) => {
    session.connect();
    session.on('NodeWorker.attachedToWorker', ({ params }) => {
      if (isThread(params, threadId)) onConnected(connectionToWorker(session, params.sessionId));
    });
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  });
}

/** For a worker: the same of the main thread. */
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
    // A thread that has not been interrupted yet would stop when it comes back, for nobody.
    found?.post('Debugger.disable');
    session.disconnect();
  }
}

/** The title of a worker has its thread's number: "Worker 3", "[worker 3] name". */
function isThread(
  { workerInfo }: NodeWorker.AttachedToWorkerEventDataType,
  threadId: number,
): boolean {
  return /\d+/.exec(workerInfo.title)?.[0] === String(threadId);
}

function connectionToWorker(session: Session, sessionId: string): Connection {
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
  /** The files of scripts, which are told before anything else. */
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
