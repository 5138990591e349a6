// The load: sends a request over each connection as soon as the last is answered, and reports the number of
// answers ten times a second. It reads only their length: a whole client would cost more than the server.
import { connect } from 'node:net';

const request = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';
const reportEveryMs = 100;

export function start({ bus, signal, config: { port, connections } }) {
  let answers = 0;
  for (let each = 0; each < connections; each += 1) {
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    socket.on('data', (bytes) => {
      if (!bytes.subarray(-12).equals(lastBytes)) return; // an answer that came in two pieces
      answers += 1;
      socket.write(request);
    });
    socket.on('error', () => {}); // the server ends first
    signal.addEventListener('abort', () => socket.destroy());
  }
  const timer = setInterval(() => {
    bus.send('answers', answers);
    answers = 0;
  }, reportEveryMs);
  return () => clearInterval(timer);
}

const lastBytes = Buffer.from('Hello World!');
