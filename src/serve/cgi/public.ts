// The public names of 'manycore/serve/cgi'. Re-exports only; api/cgi.d.ts has their types.

export type { FolderListener } from '../folder-listener.js';
export { type CgiOptions, serveCgi } from './cgi.js';
