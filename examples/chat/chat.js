// A chat as a unit: `manycore run examples/chat/chat.js --instances 4`. Each instance has its share of the
// WebSocket connections. A message to a room reaches all instances over the bus: on this machine, and with
// `--cluster nats://…` on all others. Not here: the guests of a room (room.js), one connection (guest.js),
// the format of input (input.js).
import { once } from 'node:events';
import { createServer } from 'node:http';
import { serveStatic } from 'manycore/serve/static';
import { WebSocketServer } from 'ws';
import { Guest } from './guest.js';
import { InputError, readInput } from './input.js';
import { Room } from './room.js';

const defaults = {
  port: 8080,
  rooms: ['lobby', 'kitchen', 'garden'],
  /** Unsent bytes for one guest; above this its connection ends, because it reads too slowly. */
  maxBehindBytes: 2 ** 20,
  /** Interval at which instances publish the names of their guests. */
  beatMs: 5000,
};
/** Interval of pings to each connection, in ms. */
const probeMs = 30_000;
/** Time for a browser to acknowledge the end of its connection, in ms. */
const closeTimeout = 2000;
/**
 * Limit of one message; a longer one ends the connection. The longest text fits, however it is escaped. In
 * bytes.
 */
const maxPayload = 2 ** 13;
/** Close code of a WebSocket: the server goes away. */
const goingAway = 1001;

export default class Chat {
  #bus;
  #config;
  #instance;
  #rooms;
  #server;
  #sockets;
  #guests = new Set();
  #timer;

  async start({ bus, config, instance }) {
    this.#bus = bus;
    this.#config = { ...defaults, ...config };
    this.#instance = instance;
    const { rooms, beatMs, port } = this.#config;
    this.#rooms = new Map(rooms.map((name) => [name, new Room(bus, name, beatMs)]));
    this.#server = createServer(serveStatic(new URL('./page/', import.meta.url)));
    this.#sockets = new WebSocketServer({ server: this.#server, maxPayload, closeTimeout });
    this.#sockets.on('connection', (socket) => this.#welcome(socket));
    this.#server.listen(port);
    await once(this.#server, 'listening');
    this.#timer = setInterval(() => {
      for (const guest of this.#guests) guest.probe();
    }, probeMs);
  }

  #welcome(socket) {
    const guest = new Guest(socket, this.#config.maxBehindBytes);
    this.#guests.add(guest);
    socket.on('message', (bytes) => this.#receive(guest, String(bytes)));
    socket.on('error', () => {}); // the connection ends, and that is all there is to do
    socket.on('close', () => {
      this.#guests.delete(guest);
      guest.room?.leave(guest);
    });
    const rooms = [...this.#rooms.keys()];
    guest.send({ hello: { rooms, instance: this.#instance, pid: process.pid } });
  }

  #receive(guest, text) {
    try {
      const input = readInput(text, this.#rooms);
      if (input.say === undefined) enter(guest, input);
      else this.#say(guest, input.say);
    } catch (error) {
      if (error.code === undefined) throw error;
      guest.send({ error: error.message });
    }
  }

  #say(guest, text) {
    if (guest.room === undefined) throw new InputError('enter a room first');
    const hasRoom = guest.room.say(guest.name, text);
    if (!hasRoom) guest.waitFor(this.#bus.drained());
  }

  health() {
    return `${this.#guests.size} guests`;
  }

  /** Ends the connections: browsers reconnect at once, to other instances. */
  async stop() {
    clearInterval(this.#timer);
    this.#server.close();
    const closed = once(this.#sockets, 'close');
    this.#sockets.close();
    for (const guest of this.#guests) guest.close(goingAway, 'this server ends: connect again');
    await closed;
  }
}

function enter(guest, { room, name }) {
  guest.room?.leave(guest);
  guest.room = undefined;
  guest.name = name;
  const names = room.enter(guest);
  guest.room = room;
  guest.send({ entered: room.name, names });
}
