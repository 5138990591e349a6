// Options of `cluster`, checked and filled. All are plain data: each loop makes its own connection to the
// NATS server from the same options.

import { boolean, integer, invalid, oneOf, ownOptions, string, strings } from '../lib/index.js';

/** Addresses of the NATS servers and credentials, with the names of the NATS client, except `credsFile`. */
export interface NatsOptions {
  /** `nats://host:port`, or `tls://…` to require TLS: one, or several of the same NATS cluster. */
  readonly servers: string | readonly string[];
  readonly user?: string | undefined;
  readonly pass?: string | undefined;
  readonly token?: string | undefined;
  /** File of credentials as written by `nsc`; it has to exist on every machine. */
  readonly credsFile?: string | undefined;
  /** Paths (`caFile`, `certFile`, `keyFile`) or PEM texts (`ca`, `cert`, `key`). `{}`: requires TLS. */
  readonly tls?: Readonly<Record<string, string | boolean>> | undefined;
  /** Prefix of the subjects for answers. Default: `_INBOX`. */
  readonly inboxPrefix?: string | undefined;
  /** Period after which an idle connection is tested, in ms. Default: 10,000. */
  readonly pingInterval?: number | undefined;
}

export interface ClusterOptions {
  /** A URL, several URLs, or the options of the connection. */
  readonly nats: string | readonly string[] | NatsOptions;
  /** Clusters of different names on one NATS server are separate. Default: `manycore`. */
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

export interface FilledClusterOptions {
  readonly nats: NatsOptions;
  readonly name: string;
  readonly secret: string | undefined;
  readonly local: 'prefer' | undefined;
  readonly timeoutMs: number;
}

/** Returns the servers as text for people. */
export function serversOf({ nats }: FilledClusterOptions): string {
  return [nats.servers].flat().join(', ');
}

const names = new Set(['nats', 'name', 'secret', 'local', 'timeoutMs']);
const natsNames = new Set([
  'servers',
  'user',
  'pass',
  'token',
  'credsFile',
  'tls',
  'inboxPrefix',
  'pingInterval',
]);
const minSecretChars = 16;

/** Throws `OPTION_INVALID`. */
export function fillClusterOptions(options: ClusterOptions): FilledClusterOptions {
  const given = ownOptions('the options of cluster', options, names);
  const { name = 'manycore', secret, local, timeoutMs = 10_000 } = given;
  if (!/^[\w-]+$/.test(string('name', name, 'a name'))) {
    throw invalid('name', name, 'letters, digits, _ and - only');
  }
  if (secret !== undefined && string('secret', secret, 'a text').length < minSecretChars) {
    throw invalid('secret', '…', `${minSecretChars} characters or more`); // no secret in error texts
  }
  if (local !== undefined) oneOf('local', local, ['prefer']);
  integer('timeoutMs', timeoutMs, 1, 2 ** 31 - 1);
  return { nats: fillNats(given.nats), name, secret, local, timeoutMs };
}

function fillNats(nats: ClusterOptions['nats']): NatsOptions {
  const isList = typeof nats === 'string' || Array.isArray(nats);
  const given: NatsOptions = isList ? { servers: nats } : Object(nats);
  const options = ownOptions('nats', given, natsNames);
  const { servers, user, pass, token, credsFile, inboxPrefix, pingInterval, tls } = options;
  const list = typeof servers === 'string' ? [servers] : strings('nats.servers', servers);
  if (list.length === 0 || list.some((each) => each === '')) {
    throw invalid('nats.servers', servers, 'the URL of a NATS server, or several');
  }
  for (const [key, value] of Object.entries({ user, pass, token, credsFile, inboxPrefix })) {
    if (value !== undefined) string(`nats.${key}`, value, 'a text');
  }
  if (tls !== undefined) ownOptions('nats.tls', tls, new Set(Object.keys(tls)));
  if (pingInterval !== undefined) integer('nats.pingInterval', pingInterval, 100, 2 ** 31 - 1);
  return {
    ...options,
    ...(tls === undefined && list.some((url) => url.startsWith('tls://')) && { tls: {} }),
    ...withoutUser(list),
    ...(user !== undefined && { user, pass }),
  };
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

/** Throws `OPTION_INVALID`. */
export function fillLendOptions(options: LendOptions) {
  const lendNames = new Set(['durable', 'modules', 'drainTimeoutMs']);
  const given = ownOptions('the options of lendWorkers', options, lendNames);
  const modules = strings('modules', [...(given.modules ?? [])].map(String));
  const wrong = modules.find((url) => !URL.canParse(url));
  if (wrong !== undefined)
    throw invalid('modules', wrong, 'URLs: pathToFileURL(path), or import.meta.resolve');
  const durable = boolean('durable', given.durable ?? modules.length > 0);
  if (!durable && modules.length > 0)
    throw invalid('durable', durable, 'true where modules are given');
  const { drainTimeoutMs = 30_000 } = given;
  integer('drainTimeoutMs', drainTimeoutMs, 0, 2 ** 31 - 1);
  return { durable, modules: new Set(modules), drainTimeoutMs };
}
