// The peer of harness.ts: runs functions that arrive as bytes.

import { createExporter, createImporter, exportError } from '../../src/context/index.js';
import { learn, type Request, unheard } from './harness.js';

const exporter = createExporter();
const importer = createImporter({ exporter });
const heard = new Set<number>();
let order: Promise<unknown> = Promise.resolve();

async function answer(request: Request): Promise<void> {
  const learnt = order.then(() => learn(importer, request.definitions));
  order = learnt.catch(() => {});
  let isError = false;
  let snapshot: ReturnType<typeof exportError>;
  try {
    await learnt;
    const fn = importer.importFunction(request.id, request.state);
    const args = importer.importValue(request.args);
    const result: unknown = await fn(...(Array.isArray(args) ? args : []));
    snapshot = exporter.exportValue(result, 'the result');
  } catch (error) {
    isError = true;
    snapshot = exportError(exporter, error);
  }
  const definitions = unheard(exporter, heard, snapshot.definitions);
  process.send?.({ serial: request.serial, definitions, bytes: snapshot.bytes, isError });
}

process.on('message', (request: Request) => {
  void answer(request);
});
