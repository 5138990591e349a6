// Clients of each kind that a reload can harm. Each sends requests until `isOver`; a request fails when its answer
// is wrong, cut off or missing. Requests that a protocol says to repeat are repeated, and counted: those behind
// an answer with `Connection: close` (RFC 9112, 9.6), and streams that were refused (RFC 9113, 8.7). Counted
// apart: a GET that was sent when the server had just closed its connection, because that was idle for a second
// in a drain. Clients may repeat it (RFC 9112, 9.3.1); Node's do not by themselves.
import { Agent, request as requestPlain } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { request as requestSecurely, Agent as SecureAgent } from 'node:https';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';

const answerLimitMs = 20_000;
const host = '127.0.0.1';

/**
 * One client after the other does what its kind does, `each` times at once. `to` names where: `{ port, tlsPort,
 * http2Port, path, file, large }`. Returns `{ stop }`, which resolves to counts by kind: `{ answered, failed,
 * repeated, late, failures }`.
 */
export function startClients(names, each, to) {
  let isOver = false;
  const counts = {};
  const runs = names.flatMap((name) => {
    const count = { answered: 0, failed: 0, repeated: 0, late: 0, failures: [] };
    counts[name] = count;
    return Array.from({ length: each }, async (_, index) => {
      const once = kinds[name](to, count, index);
      while (!isOver) {
        try {
          await once();
          count.answered += 1;
        } catch (error) {
          count.failed += 1;
          await sleep(10);
          if (count.failures.length < 5) count.failures.push(String(error?.stack ?? error));
        }
      }
    });
  });
  return {
    stop: async () => {
      isOver = true;
      await Promise.all(runs);
      return counts;
    },
  };
}

/** Each returns a function that sends one request, or one conversation, and throws when it fails. */
const kinds = {
  /** Kept alive, one request after the other. */
  kept: ({ port, file }, count) => asker({ port, path: file }, count),
  /** Kept alive, with pauses longer than those after which a server that drains closes. */
  pausing: ({ port, file }, count) => {
    const send = asker({ port, path: file }, count);
    return async () => {
      await sleep(1500 * Math.random());
      await send();
    };
  },
  /** A connection for each request. */
  new: ({ port, file }, count) => asker({ port, path: file }, count, { isKept: false }),
  pipelined: ({ port, file }, count) => pipeliner(port, file, count),
  /** A body of which a part comes each 50 ms. */
  upload: ({ port }) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    return async () => {
      const body = async (sent) => {
        for (let piece = 0; piece < 6; piece += 1) {
          sent.write('x'.repeat(1000));
          await sleep(50);
        }
        sent.end();
      };
      const text = await ask({ port, path: '/upload', method: 'POST', agent }, requestPlain, body);
      expect(text, 'got 6000');
    };
  },
  /** An answer of which a part comes each 50 ms; of a file: a client that reads a part each 20 ms. */
  download: ({ port, large, largeBytes = 60_000 }, count) => {
    const read = asker({ port, path: large ?? '/download' }, count, {
      readMs: large === undefined ? 0 : 20,
    });
    return () => read('x'.repeat(largeBytes));
  },
  events: ({ port }) => {
    return async () => {
      const text = await ask({ port, path: '/events', agent: false }, requestPlain);
      expect(text.split('\n\n').length, 8);
    };
  },
  webSocket: ({ port }) => {
    return () =>
      new Promise((resolve, reject) => {
        const socket = new WebSocket(`ws://${host}:${port}/`, { handshakeTimeout: answerLimitMs });
        let received = 0;
        socket.on('error', reject);
        socket.on('open', () => socket.send('0'));
        socket.on('message', async (text) => {
          if (String(text) !== String(received)) reject(new Error(`${text}, not ${received}`));
          received += 1;
          await sleep(50);
          if (received === 10) socket.close();
          else socket.send(String(received));
        });
        socket.on('close', () => {
          if (received === 10) resolve();
          else reject(new Error(`closed after ${received} messages`));
        });
      });
  },
  tls: ({ tlsPort: port }, count) =>
    asker({ port, rejectUnauthorized: false }, count, { send: requestSecurely }),
  http2: ({ http2Port: port }, count) => http2Client(port, count),
  unixSocket: ({ path }, count) => asker({ socketPath: path }, count),
  ranges: ({ port, large }, count) => {
    const read = asker({ port, path: large, headers: { range: 'bytes=5-14' } }, count);
    return () => read('x'.repeat(10));
  },
  /** Requests that compute, so that kept-alive connections leave their loop. */
  blocking: ({ port }, count) => {
    const send = asker({ port, path: '/block?ms=60' }, count);
    return async () => {
      await send();
      await sleep(100);
    };
  },
};

/** Kinds for a program, and for a folder of files. */
export const programKinds = [
  'kept',
  'pausing',
  'new',
  'pipelined',
  'upload',
  'download',
  'events',
  'webSocket',
  'tls',
  'http2',
  'unixSocket',
];
export const fileKinds = ['kept', 'pausing', 'new', 'pipelined', 'download', 'ranges'];

/** Sends GETs over one connection, or one each, with the cookie that the server has set. */
function asker(options, count, { isKept = true, send = requestPlain, readMs = 0 } = {}) {
  const keep = { keepAlive: isKept, maxSockets: 1 };
  const agent = send === requestPlain ? new Agent(keep) : new SecureAgent(keep);
  let cookie;
  const onHead = ({ headers: { 'set-cookie': set } }) => {
    if (set !== undefined) [cookie] = set[0].split(';');
  };
  return async (expected = 'hello') => {
    const headers = { ...options.headers, ...(cookie !== undefined && { cookie }) };
    for (;;) {
      try {
        const body = await ask({ ...options, headers, agent }, send, undefined, readMs, onHead);
        expect(body, expected);
        return;
      } catch (error) {
        if (error.isLate !== true) throw error;
        count.late += 1;
      }
    }
  };
}

/** Resolves to the body; `readMs` is a pause after each chunk that is read. */
function ask(options, send, sendBody = (sent) => sent.end(), readMs = 0, onHead = () => {}) {
  return new Promise((resolve, reject) => {
    let hasHead = false;
    const sent = send({ host, timeout: answerLimitMs, ...options }, async (response) => {
      hasHead = true;
      try {
        onHead(response);
        if (response.statusCode > 299) throw new Error(`status ${response.statusCode}`);
        const chunks = [];
        for await (const chunk of response) {
          chunks.push(chunk);
          if (readMs > 0) await sleep(readMs);
        }
        resolve(Buffer.concat(chunks).toString('latin1'));
      } catch (error) {
        reject(error);
      }
    });
    sent.on('error', (error) => {
      // As Node's documentation of `reusedSocket` has it.
      const isLate = sent.reusedSocket && error.code === 'ECONNRESET' && !hasHead;
      reject(Object.assign(error, { isLate }));
    });
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
    sendBody(sent);
  });
}

/** Sends three requests ahead, over one connection as long as the server keeps it. */
function pipeliner(port, path, count) {
  let socket;
  return async () => {
    let missing = 3;
    while (missing > 0) {
      if (socket === undefined || socket.destroyed) socket = connect(port, host).setNoDelay();
      const { answers, isClosing } = await sendAhead(socket, path, missing);
      missing -= answers;
      if (isClosing) {
        socket.destroy();
        count.repeated += missing;
      } else if (missing > 0) throw new Error(`${missing} requests without an answer`);
    }
  };
}

function sendAhead(socket, path, number) {
  return new Promise((resolve, reject) => {
    let text = '';
    const read = (chunk) => {
      text += chunk;
      const answers = text.split('\r\n\r\nhello').length - 1;
      const isClosing = /^connection: close\r$/im.test(text);
      if (answers === number || (isClosing && answers > 0)) done(resolve, { answers, isClosing });
    };
    const fail = () => done(reject, new Error(`closed after ${JSON.stringify(text)}`));
    const done = (settle, value) => {
      socket.off('data', read).off('close', fail);
      settle(value);
    };
    socket.removeAllListeners('error');
    socket.on('error', () => {}); // `close` follows
    socket.on('data', read).on('close', fail);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(number));
  });
}

/** A session for as long as the server keeps it; a stream that was refused is sent again. */
function http2Client(port, count) {
  let session;
  const once = () =>
    new Promise((resolve, reject) => {
      if (session === undefined || session.closed || session.destroyed) {
        session = connectHttp2(`https://${host}:${port}`, { rejectUnauthorized: false });
        session.on('error', reject);
      }
      const stream = session.request({ ':path': '/' });
      let text = '';
      let status;
      stream.on('response', ({ ':status': given }) => {
        status = given;
      });
      stream.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      stream.on('error', (error) => {
        const isRefused = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM;
        if (isRefused && status === undefined) resolve('refused');
        else reject(error);
      });
      stream.on('end', () => {
        if (status === 200 && text === 'hello') resolve('answered');
      });
      stream.on('close', () => reject(new Error(`stream closed: ${status} ${text}`)));
    });
  return async () => {
    while ((await once()) === 'refused') count.repeated += 1;
    await sleep(20 * Math.random());
  };
}

function expect(found, expected) {
  if (found === expected) return;
  throw new Error(`${String(found).slice(0, 100)}, not ${String(expected).slice(0, 100)}`);
}
