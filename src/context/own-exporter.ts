// State that an exporter shares with the importer of its side: numbers of functions and classes, and the imports
// that values are compared with.

import type { BufferCarrier, Exporter } from './types.js';
import { Identities } from './values/identities.js';
import { Sentinels } from './values/sentinels.js';

export interface ExporterOptions {
  readonly buffers?: BufferCarrier | undefined;
  /**
   * True: functions and classes that a peer made are also ours. All peers, the maker included, re-create them
   * from this side, and one that comes back is the one of this side.
   */
  readonly ownsCode?: boolean;
  /** True: values with code in them are refused (`PARTITION_CODE`). */
  readonly isDataOnly?: boolean;
}

export class ExporterState {
  readonly identities: Identities;
  /** Imports of functions, here and of peers, that values are compared with. */
  readonly sentinels = new Sentinels();

  /** `tag`: see `Identities`. */
  constructor(ownsCode: boolean, tag?: number) {
    this.identities = new Identities(ownsCode, tag);
  }
}

/** An exporter of this side. */
export interface OwnExporter extends Exporter {
  readonly state: ExporterState;
}

/** The state of `exporter`; `undefined`: it is none of this side. */
export function stateOf(exporter: Exporter): ExporterState | undefined {
  return 'state' in exporter && exporter.state instanceof ExporterState
    ? exporter.state
    : undefined;
}
