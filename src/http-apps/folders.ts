// The program behind `manycore serve --static DIR --cgi DIR`: exports a listener for folders. Requests for files
// that a loop has sent before are answered by a thread of the process (file-thread.ts).

import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { serveCgi } from './cgi/cgi.js';
import { type FileThread, fileThread as threadOfLoop } from './file-thread.js';
import { fileListener, type SentFile } from './static/static.js';

declare module 'node:http' {
  interface OutgoingMessage {
    /** Since Node 15.4; the types have it at a request only. */
    getRawHeaderNames(): string[];
  }
}

/** URL prefix of CGI programs. */
const cgiPrefix = '/cgi-bin/';

export interface Folders {
  readonly static?: string;
  readonly cgi?: string;
  /** False: loops answer all requests. */
  readonly fileThread: boolean;
}

function listenerOf({ static: files, cgi, fileThread }: Folders): RequestListener {
  const options = { prefix: cgiPrefix, documentRoot: files };
  const programs = cgi === undefined ? undefined : serveCgi(cgi, options);
  const thread = fileThread && files !== undefined ? startedThread() : undefined;
  const rest =
    files === undefined
      ? undefined
      : fileListener(files, {}, thread && ((sent) => addTo(thread, sent)));
  return (request, response) => {
    if (thread !== undefined) giveBackAfter(request, response, thread);
    if (programs === undefined) rest?.(request, response);
    else if (rest === undefined) programs(request, response);
    else programs(request, response, () => rest(request, response));
  };
}

function startedThread(): FileThread | undefined {
  const thread = threadOfLoop();
  const keepAliveSeconds = Math.floor(createServer().keepAliveTimeout / 1000);
  return thread?.serve(keepAliveSeconds) === true ? thread : undefined;
}

/** Adds a file with what is being sent, but for the fields of the connection, which Node adds later. */
function addTo(thread: FileThread, { request, response, path, fd }: SentFile): void {
  const fields = response
    .getRawHeaderNames()
    .flatMap((name) => [name, `${response.getHeader(name)}`]);
  const { 'accept-encoding': acceptEncoding = '' } = request.headers;
  thread.add(request.url ?? '', String(acceptEncoding), path, fd, fields);
}

/** Gives the connection back to the thread once its one request is answered. */
function giveBackAfter(
  request: IncomingMessage,
  response: ServerResponse,
  thread: FileThread,
): void {
  const { socket } = request;
  response.once('finish', () => {
    const stays = Reflect.get(response, 'shouldKeepAlive') === true && socket.writableLength === 0;
    if (stays && !socket.destroyed && thread.takeBack(socket)) socket.destroy();
  });
}

/** The one argument of the program. */
const folders: Folders = JSON.parse(process.argv[2] ?? '{}');

export default listenerOf(folders);
