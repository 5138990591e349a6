export { bytesSentNatively } from './bytes-sent-natively.js';
export { type FileThread, setFileThread } from './file-thread.js';
export { foldersApp } from './folders-path.js';
export { escaped } from './html.js';
export { targetOf } from './target.js';
