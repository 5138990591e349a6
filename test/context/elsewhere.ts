// One call as a worker would run it, by the bytes of it alone, in this process.

import {
  type AnyFunction,
  createExporter,
  createImporter,
  type FunctionSnapshot,
} from '../../src/context/index.js';

/** Throws `TRANSFER_…` as a pool's caller would get it. */
export function runElsewhere(fn: AnyFunction, args: readonly unknown[]): unknown {
  const exporter = createExporter();
  const importer = createImporter({ exporter: createExporter() });
  const defineAll = (ids: readonly number[]): void => {
    for (const id of new Set(ids)) void importer.define(id, exporter.definition(id));
  };
  const call = ({ id, definitions, state }: FunctionSnapshot) => {
    defineAll(definitions);
    return importer.importFunction(id, state);
  };
  const snapshot = exporter.exportFunction(fn);
  const values = exporter.exportValue(args, 'the arguments');
  const haveCode = values.definitions.length > 0;
  const joint = exporter.exportJoint(fn, args, haveCode);
  if (joint !== undefined) return call(joint)();
  defineAll(values.definitions);
  const copies = importer.importValue(values.bytes);
  return call(snapshot)(...(Array.isArray(copies) ? copies : []));
}
