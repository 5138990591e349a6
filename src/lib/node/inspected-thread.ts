// A connection to another thread of this process by the inspector, which interrupts JavaScript there: a busy
// thread answers, too. Node offers it in the main thread; other threads reach it through that one.

import type { Session } from 'node:inspector';
import { jsonOf } from './json.js';

/** An answer or an event of the inspected thread. */
export interface InspectorMessage {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: object;
  readonly result?: object;
  readonly error?: { readonly message?: unknown };
}

export interface InspectedThread {
  /** Sends a command, and returns the id of its answer. */
  post(method: string): number;
  onMessage(listener: (message: InspectorMessage) => void): void;
}

export interface AttachEvents {
  readonly onAttached: (thread: InspectedThread) => void;
  /** The thread has ended. */
  readonly onDetached?: () => void;
  /** There is no such thread, or Node cannot attach to it: the reason. */
  readonly onFailed?: (reason: string) => void;
}

/** Attaches `session`, which is connected to the main thread, to one worker thread; to no other one. */
export function attachToThread(
  session: Session,
  threadId: number,
  { onAttached, onDetached, onFailed }: AttachEvents,
): void {
  let own: string | undefined;
  session.on('NodeWorker.attachedToWorker', ({ params: { sessionId, workerInfo } }) => {
    // The title has the thread id: "Worker 3", "[worker 3] name".
    if (/\d+/.exec(workerInfo.title)?.[0] === String(threadId)) {
      own = sessionId;
      onAttached(inspectedThread(session, sessionId));
    } else {
      session.post('NodeWorker.detach', { sessionId });
    }
  });
  session.on('NodeWorker.detachedFromWorker', ({ params }) => {
    if (params.sessionId === own) onDetached?.();
  });
  session.post('NodeWorker.enable', { waitForDebuggerOnStart: false }, (error) => {
    if (error !== null) onFailed?.(error.message);
    else if (own === undefined) onFailed?.(`Node lists no thread ${threadId}`);
  });
}

function inspectedThread(session: Session, sessionId: string): InspectedThread {
  let id = 0;
  return {
    post(method) {
      id += 1;
      const message = jsonOf({ id, method });
      session.post('NodeWorker.sendMessageToWorker', { sessionId, message });
      return id;
    },
    onMessage(listener) {
      session.on('NodeWorker.receivedMessageFromWorker', ({ params: { message, ...from } }) => {
        if (from.sessionId === sessionId) listener(Object(JSON.parse(message)));
      });
    },
  };
}
