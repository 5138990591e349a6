// The exporter of a worker: its sending half is loaded for the first value that is not plain.

import { sendingHalf } from './late.js';
import { type ExporterOptions, ExporterState, type OwnExporter } from './own-exporter.js';
import type { Exporter } from './types.js';

/** Makes the sending half of a worker. */
export function createLateExporter(options: ExporterOptions = {}): Exporter {
  return new LateExporter(options);
}

class LateExporter implements OwnExporter {
  readonly state: ExporterState;
  readonly #options: ExporterOptions;
  #loaded: Exporter | undefined;

  constructor(options: ExporterOptions) {
    this.#options = options;
    this.state = new ExporterState(options.ownsCode ?? false);
  }

  get #exporter(): Exporter {
    this.#loaded ??= sendingHalf().createExporter(this.#options, this.state);
    return this.#loaded;
  }

  exportFunction(...args: Parameters<Exporter['exportFunction']>) {
    return this.#exporter.exportFunction(...args);
  }

  exportJoint(...args: Parameters<Exporter['exportJoint']>) {
    return this.#exporter.exportJoint(...args);
  }

  exportValue(...args: Parameters<Exporter['exportValue']>) {
    return this.#exporter.exportValue(...args);
  }

  hiddenState(value: object) {
    return this.#exporter.hiddenState(value);
  }

  definition(id: number) {
    return this.#exporter.definition(id);
  }

  pin(...args: Parameters<Exporter['pin']>) {
    return this.#exporter.pin(...args);
  }

  largestCapture(...args: Parameters<Exporter['largestCapture']>) {
    return this.#exporter.largestCapture(...args);
  }

  unpin(id: number) {
    this.#exporter.unpin(id);
  }
}
