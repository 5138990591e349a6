// The peer of harness.ts: runs functions that arrive as bytes.

import { createExporter, createImporter, exportError } from '../../src/context/index.js';
import { defineAll, type Request, unsent } from './harness.js';

const exporter = createExporter();
const importer = createImporter({ exporter });
const sent = new Set<number>();
let order: Promise<unknown> = Promise.resolve();

async function answer(request: Request): Promise<void> {
  const defined = order.then(() => defineAll(importer, request.definitions));
  order = defined.catch(() => {});
  let isError = false;
  let snapshot: ReturnType<typeof exportError>;
  try {
    await defined;
    const fn = importer.importFunction(request.id, request.state);
    const args = importer.importValue(request.args);
    const result: unknown = await fn(...(Array.isArray(args) ? args : []));
    snapshot = exporter.exportValue(result, 'the result');
  } catch (error) {
    isError = true;
    snapshot = exportError(exporter, error);
  }
  const definitions = unsent(exporter, sent, snapshot.definitions);
  process.send?.({ serial: request.serial, definitions, bytes: snapshot.bytes, isError });
}

process.on('message', (request: Request) => {
  void answer(request);
});
