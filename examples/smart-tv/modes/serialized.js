// The plain way: the callback decodes in the server's own event loop, and every press waits for it.
import { PNG } from 'pngjs';

export const decode = (bytes) => PNG.sync.read(bytes);
