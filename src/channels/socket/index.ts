// The channel between processes that works everywhere.

export { acceptSocket, offerSocket } from './socket.js';
