// The public names of 'manycore/serve/cgi'. Re-exports only; api/cgi.d.ts has their types.

/**
 * CGI programs as a request listener.
 *
 * @module manycore/serve/cgi
 */

export type { FolderListener } from '../folder-listener.js';
export { type CgiOptions, serveCgi } from './cgi.js';
