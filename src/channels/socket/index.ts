// The channel between processes that works everywhere.

export { acceptSocket, offerSocket, overSocket, overStream } from './socket.js';
