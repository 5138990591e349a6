// The program of the worker of threads.js: decodes the bytes of each message, and moves the pixels back.
import { parentPort } from 'node:worker_threads';
import { PNG } from 'pngjs';

parentPort.on('message', ({ id, bytes }) => {
  try {
    // A Buffer arrives as a plain Uint8Array; pngjs needs a Buffer.
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const image = PNG.sync.read(buffer);
    parentPort.postMessage({ id, image }, [image.data.buffer]);
  } catch (error) {
    parentPort.postMessage({ id, error });
  }
});
