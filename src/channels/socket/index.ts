// The channel between processes that works everywhere.

export { acceptSocket, offerSocket, overSocket } from './socket.js';
