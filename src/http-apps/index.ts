export { bytesSentNatively } from './bytes-sent-natively.js';
export { foldersApp } from './folders-app.js';
export { escaped } from './html.js';
