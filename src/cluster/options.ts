// What `cluster` can be told, checked and filled. All of it is plain data: each loop has a connection of its
// own to the NATS server, made of the same options.

import {
  boolean,
  integer,
  invalid,
  oneOf,
  ownOptions,
  string,
  strings,
} from '../internal/index.js';

/** Where the NATS servers are, and who we are to them; as the NATS client has them, but for `credsFile`. */
export interface NatsOptions {
  /** `nats://host:port`, or `tls://…` for TLS or nothing: one, or several of the same NATS cluster. */
  readonly servers: string | readonly string[];
  readonly user?: string | undefined;
  readonly pass?: string | undefined;
  readonly token?: string | undefined;
  /** A file of credentials as `nsc` writes them, on every machine. */
  readonly credsFile?: string | undefined;
  /** Paths (`caFile`, `certFile`, `keyFile`) or texts (`ca`, `cert`, `key`) in PEM. `{}`: TLS or nothing. */
  readonly tls?: Readonly<Record<string, string | boolean>> | undefined;
  /** Answers come to subjects that begin with this. Default: `_INBOX`. */
  readonly inboxPrefix?: string | undefined;
  /** A connection over which nothing comes is tested so often, in ms. Default: 10,000. */
  readonly pingInterval?: number | undefined;
}

export interface ClusterOptions {
  /** A URL, several, or more than that. */
  readonly nats: string | readonly string[] | NatsOptions;
  /** Clusters of different names on one NATS server do not hear each other. Default: `manycore`. */
  readonly name?: string | undefined;
  /**
   * What all processes of the cluster know, and nobody else: all that they send is signed with it, and
   * functions and classes travel only then. 16 characters or more.
   */
  readonly secret?: string | undefined;
  /** `prefer`: what is sent goes to consumers of the same machine first. Default: to all by turns. */
  readonly local?: 'prefer' | undefined;
  /** How long the first connection may take, in ms. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
}

export interface FilledClusterOptions {
  readonly nats: NatsOptions;
  readonly name: string;
  readonly secret: string | undefined;
  readonly local: 'prefer' | undefined;
  readonly timeoutMs: number;
}

/** For people. */
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
    throw invalid('secret', '…', `${minSecretChars} characters or more`); // not in an error's text
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

/** The client takes no user from a URL, and messages are to hold none. */
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
  /** Take durable tasks as well, one for each worker that is free. Default: only where `modules` are given. */
  readonly durable?: boolean | undefined;
  /**
   * In a cluster without a secret: URLs of modules whose exports durable tasks may call (see `task()`), and
   * nothing else.
   */
  readonly modules?: readonly (string | URL)[] | undefined;
  /** How long tasks may take once the node is to end, in ms. Default: 30,000. */
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
