export { bytesSentNatively } from './bytes-sent-natively.js';
export { serveCgi } from './cgi/cgi.js';
export { escaped } from './html.js';
export { fileListener, type SentFile } from './static/static.js';
export { targetOf } from './target.js';
