// Options of `cluster`, checked and filled. All are plain data: each loop makes its own connection to the
// NATS server from the same options.

import {
  boolean,
  integer,
  integerOption,
  invalid,
  oneOf,
  ownOptions,
  type Read,
  type Readers,
  readOptions,
  string,
  strings,
} from '../lib/index.js';

/** Addresses of the NATS servers and credentials, with the names of the NATS client, except files. */
export interface NatsOptions {
  /** `nats://host:port`, or `tls://…` to require TLS: one, or several of the same NATS cluster. */
  readonly servers: string | readonly string[];
  readonly user?: string | undefined;
  readonly pass?: string | undefined;
  readonly token?: string | undefined;
  /**
   * File of credentials as written by `nsc`; it has to exist on every machine. Each connection reads it anew, so
   * credentials that expire are renewed there.
   */
  readonly credsFile?: string | undefined;
  /** File with the seed of an nkey (`SU…`), for a user without a JWT. Read as `credsFile`, and not beside it. */
  readonly nkeyFile?: string | undefined;
  /**
   * Paths (`caFile`, `certFile`, `keyFile`) or PEM texts (`ca`, `cert`, `key`). `{}`: requires TLS.
   * `handshakeFirst`: TLS begins before the server's first line, as the server is configured (`handshake_first`).
   * `rejectUnauthorized: false` accepts any certificate of the server: for tests only. Default: true.
   */
  readonly tls?:
    | {
        readonly caFile?: string | undefined;
        readonly ca?: string | undefined;
        readonly certFile?: string | undefined;
        readonly cert?: string | undefined;
        readonly keyFile?: string | undefined;
        readonly key?: string | undefined;
        /** Passphrase of the private key. */
        readonly passphrase?: string | undefined;
        /** Name that the certificate of the server must have. Default: the host of the URL. */
        readonly servername?: string | undefined;
        readonly handshakeFirst?: boolean | undefined;
        readonly rejectUnauthorized?: boolean | undefined;
      }
    | undefined;
  /** Prefix of the subjects for answers. Default: `_INBOX`. */
  readonly inboxPrefix?: string | undefined;
  /** Period after which an idle connection is tested, in ms. Default: 10,000. */
  readonly pingInterval?: number | undefined;
}

export interface ClusterOptions {
  /** A URL, several URLs, or the options of the connection. Required, unless `transport` is given. */
  readonly nats?: string | readonly string[] | NatsOptions | undefined;
  /**
   * `local`: the programs of this user on this machine, without a server. They find each other by `name`, and a
   * private folder keeps others out: no `nats`, no `secret`.
   */
  readonly transport?: 'local' | undefined;
  /** Clusters of different names on one NATS server, or one machine, are separate. Default: `manycore`. */
  readonly name?: string | undefined;
  /**
   * Secret shared by all processes of the cluster: every message is signed with it, and only then do
   * functions and classes travel. 16 characters or more.
   */
  readonly secret?: string | undefined;
  /** `prefer`: messages go to consumers of the same machine first. Default: to all in turn. */
  readonly local?: 'prefer' | undefined;
  /** Deadline of the first connection, in ms. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
}

/** Returns the servers as text for people. */
export function serversOf({ nats }: FilledClusterOptions): string {
  return [nats?.servers ?? []].flat().join(', ');
}

const natsNames = new Set([
  'servers',
  'user',
  'pass',
  'token',
  'credsFile',
  'nkeyFile',
  'tls',
  'inboxPrefix',
  'pingInterval',
]);
const tlsTexts: Readonly<Record<string, string>> = {
  ...{ caFile: 'a path', certFile: 'a path', keyFile: 'a path' },
  ...{ ca: 'PEM text', cert: 'PEM text', key: 'PEM text', passphrase: 'a text' },
  servername: 'a host name',
};
const tlsNames = new Set([...Object.keys(tlsTexts), 'handshakeFirst', 'rejectUnauthorized']);
const minSecretChars = 16;
const withoutServer =
  "left out with transport: 'local', whose programs are all of this user and machine";

const clusterReaders = {
  nats: (name, nats, { transport }) => {
    if (transport === undefined) return fillNats(nats);
    if (nats === undefined) return nats;
    throw invalid(name, '…', `left out with transport: 'local', which needs no server`);
  },
  transport: (name, transport) =>
    transport === undefined ? transport : oneOf(name, transport, ['local']),
  name: (name, text = 'manycore') => {
    if (/^[\w-]+$/.test(string(name, text, 'a name'))) return text;
    throw invalid(name, text, 'letters, digits, _ and - only');
  },
  secret: (name, secret, { transport }) => {
    if (secret === undefined) return secret;
    if (transport === 'local') throw invalid(name, '…', withoutServer);
    if (string(name, secret, 'a text').length >= minSecretChars) return secret;
    throw invalid(name, '…', `${minSecretChars} characters or more`); // no secret in error texts
  },
  local: (name, local, { transport }) => {
    if (local === undefined) return local;
    if (transport === 'local') throw invalid(name, local, withoutServer);
    return oneOf(name, local, ['prefer']);
  },
  timeoutMs: integerOption(10_000, 1, 2 ** 31 - 1),
} satisfies Readers<ClusterOptions>;

export interface FilledClusterOptions extends Read<typeof clusterReaders> {}

/** Throws `OPTION_INVALID`. */
export function fillClusterOptions(options: ClusterOptions): FilledClusterOptions {
  return readOptions('the options of cluster', options, clusterReaders);
}

function fillNats(nats: ClusterOptions['nats']): NatsOptions {
  if (nats === undefined) {
    throw invalid('nats', nats, "the URL of a NATS server, or left out with transport: 'local'");
  }
  const isList = typeof nats === 'string' || Array.isArray(nats);
  const given: NatsOptions = isList ? { servers: nats } : Object(nats);
  const options = ownOptions('nats', given, natsNames);
  const { servers, user, pass, token, credsFile, nkeyFile, inboxPrefix, pingInterval, tls } =
    options;
  const list = typeof servers === 'string' ? [servers] : strings('nats.servers', servers);
  if (list.length === 0 || list.some((each) => each === '')) {
    throw invalid('nats.servers', servers, 'the URL of a NATS server, or several');
  }
  const texts = { user, pass, token, credsFile, nkeyFile, inboxPrefix };
  for (const [key, value] of Object.entries(texts)) {
    if (value !== undefined) string(`nats.${key}`, value, 'a text');
  }
  if (credsFile !== undefined && nkeyFile !== undefined) {
    throw invalid('nats.nkeyFile', nkeyFile, 'left out with credsFile, which holds a key as well');
  }
  if (tls !== undefined) checkTls(tls);
  if (pingInterval !== undefined) integer('nats.pingInterval', pingInterval, 100, 2 ** 31 - 1);
  return {
    ...options,
    ...(tls === undefined && list.some((url) => url.startsWith('tls://')) && { tls: {} }),
    ...withoutUser(list),
    ...(user !== undefined && { user, pass }),
  };
}

/** Throws `OPTION_INVALID`; texts of keys are in no error. */
function checkTls(tls: NonNullable<NatsOptions['tls']>): void {
  for (const [key, value] of Object.entries(ownOptions('nats.tls', tls, tlsNames))) {
    if (value === undefined) continue;
    const name = `nats.tls.${key}`;
    const what = tlsTexts[key];
    if (key === 'passphrase' && typeof value !== 'string') throw invalid(name, '…', 'a text');
    if (what !== undefined) string(name, value, what);
    else if (typeof value !== 'boolean') throw invalid(name, value, 'true or false');
  }
}

/** Moves credentials out of the URLs: the client takes none there, and error texts must not contain them. */
function withoutUser(servers: readonly string[]) {
  let user: { readonly user: string; readonly pass: string } | undefined;
  const bare = servers.map((server) => {
    const [, scheme = '', info, rest = ''] = /^(\w+:\/\/)?(?:([^@]*)@)?([^]*)$/.exec(server) ?? [];
    if (info !== undefined) {
      const [name = '', pass = ''] = info.split(':');
      user = { user: decodeURIComponent(name), pass: decodeURIComponent(pass) };
    }
    return `${scheme}${rest}`;
  });
  return { servers: bare, ...user };
}

export interface LendOptions {
  /** Takes durable tasks as well, one for each free worker. Default: only where `modules` are given. */
  readonly durable?: boolean | undefined;
  /**
   * In a cluster without a secret: URLs of the only modules whose exports durable tasks may call (see
   * `task()`).
   */
  readonly modules?: readonly (string | URL)[] | undefined;
  /** Time for running tasks once the node has to end, in ms. Default: 30,000. */
  readonly drainTimeoutMs?: number | undefined;
}

function moduleList(name: string, given: LendOptions['modules'] = []): string[] {
  if (!Array.isArray(given)) throw invalid(name, given, 'an array of URLs');
  return given.map(String);
}

const lendReaders = {
  durable: (name, given, { modules }) => {
    const hasModules = moduleList('modules', modules).length > 0;
    const durable = boolean(name, given ?? hasModules);
    if (durable || !hasModules) return durable;
    throw invalid(name, durable, 'true where modules are given');
  },
  modules: (name, given) => {
    const modules = moduleList(name, given);
    const wrong = modules.find((url) => !URL.canParse(url));
    if (wrong === undefined) return new Set(modules);
    throw invalid(name, wrong, 'URLs: pathToFileURL(path), or import.meta.resolve');
  },
  drainTimeoutMs: integerOption(30_000, 0, 2 ** 31 - 1),
} satisfies Readers<LendOptions>;

/** Throws `OPTION_INVALID`. */
export function fillLendOptions(options: LendOptions) {
  return readOptions('the options of lendWorkers', options, lendReaders);
}
