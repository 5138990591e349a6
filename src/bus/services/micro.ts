// The data that a service publishes in a cluster: name and version by NATS ADR-32 ("micro"), and statistics
// of its methods. Not here: the answers over NATS (cluster/bus/micro.ts).

import {
  invalid,
  ownOptions,
  type Read,
  type Readers,
  readOptions,
  string,
} from '../../lib/index.js';

/** The description of a service for NATS tools, such as `nats micro ls`. */
export interface MicroOptions {
  /** Letters, digits, `_` and `-`; instances of one service share it. */
  readonly name: string;
  /** By semantic versioning: `1.2.3`. */
  readonly version: string;
  /** Default: empty. */
  readonly description?: string | undefined;
  /** Texts for tools, by name. Default: none. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

const semanticVersion = /^\d+\.\d+\.\d+(?:-[\w.-]+)?(?:\+[\w.-]+)?$/;

const readers = {
  name: (_, name) => {
    if (/^[\w-]+$/.test(string('micro.name', name, 'a name'))) return name;
    throw invalid('micro.name', name, 'letters, digits, _ and - only');
  },
  version: (_, version) => {
    if (semanticVersion.test(string('micro.version', version, 'a version'))) return version;
    throw invalid('micro.version', version, 'a semantic version, such as 1.2.3');
  },
  description: (_, description = '') => {
    if (typeof description === 'string') return description;
    throw invalid('micro.description', description, 'a text');
  },
  metadata: (_, metadata = {}) => {
    if (Symbol.iterator in Object(metadata)) {
      throw invalid('micro.metadata', metadata, 'a plain object of texts');
    }
    const names = new Set(Object.keys(Object(metadata)));
    const own = { ...ownOptions('micro.metadata', metadata, names) };
    for (const [name, value] of Object.entries(own)) {
      if (typeof value !== 'string') throw invalid(`micro.metadata.${name}`, value, 'a text');
    }
    return own;
  },
} satisfies Readers<MicroOptions>;

export interface FilledMicro extends Read<typeof readers> {}

/** Throws `OPTION_INVALID`. */
export function fillMicro(options: MicroOptions): FilledMicro {
  return readOptions('the options of micro', options, readers);
}

/** Statistics of one method, since the service was registered. */
export class MethodStats {
  requests = 0;
  errors = 0;
  /** Time in which calls ran, summed up, in ms. */
  runMs = 0;
  /** Message of the last error; empty: there was none. */
  lastError = '';
}

/** A service as an uplink shows it to others. */
export interface AdvertisedService {
  readonly address: string;
  readonly micro: FilledMicro;
  readonly startedAt: Date;
  readonly methods: ReadonlyMap<string, MethodStats>;
}

/** A place where services are shown to others, until the returned function is called. */
export interface Advertiser {
  advertise(service: AdvertisedService): () => void;
}

/** The services of a bus that have a description, also those registered before there was an uplink. */
export class AdvertisedServices {
  readonly #withdrawals = new Map<AdvertisedService, (() => void) | undefined>();
  #uplink: Advertiser | undefined;

  /** Shows a service, now or as soon as there is an uplink, until the returned function is called. */
  add(service: AdvertisedService): () => void {
    this.#withdrawals.set(service, this.#uplink?.advertise(service));
    return () => {
      this.#withdrawals.get(service)?.();
      this.#withdrawals.delete(service);
    };
  }

  setUplink(uplink: Advertiser): void {
    this.#uplink = uplink;
    for (const service of this.#withdrawals.keys()) {
      this.#withdrawals.set(service, uplink.advertise(service));
    }
  }

  /** The uplink is gone, and shows nothing any more. */
  endUplink(): void {
    this.#uplink = undefined;
    for (const service of this.#withdrawals.keys()) this.#withdrawals.set(service, undefined);
  }
}
