// The public names of 'manycore/serve/static'. Re-exports only; api/static.d.ts has their types.

/**
 * Files as a request listener.
 *
 * @module manycore/serve/static
 */

export type { FolderListener } from '../folder-listener.js';
export { type StaticOptions, serveStatic } from './static.js';
