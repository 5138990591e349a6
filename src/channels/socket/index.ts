// The channel between processes that works everywhere.

export { acceptSocket, offerSocket, socketChannel } from './socket.js';
