// The program behind `manycore serve --static DIR --cgi DIR`: exports a listener for folders.

import type { RequestListener } from 'node:http';
import { serveCgi } from './cgi/cgi.js';
import { serveStatic } from './static/static.js';

/** URL prefix of CGI programs. */
const cgiPrefix = '/cgi-bin/';

export interface Folders {
  readonly static?: string;
  readonly cgi?: string;
}

function listenerOf({ static: files, cgi }: Folders): RequestListener {
  const options = { prefix: cgiPrefix, documentRoot: files };
  const programs = cgi === undefined ? undefined : serveCgi(cgi, options);
  const rest = files === undefined ? undefined : serveStatic(files);
  if (programs === undefined) return (request, response) => rest?.(request, response);
  if (rest === undefined) return (request, response) => programs(request, response);
  return (request, response) => programs(request, response, () => rest(request, response));
}

/** The one argument of the program. */
const folders: Folders = JSON.parse(process.argv[2] ?? '{}');

export default listenerOf(folders);
