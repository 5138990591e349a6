// What `run` and `worker` are told of a cluster, and what they tell of it. Everybody can read command lines:
// what is secret comes from a file or from the environment, and flags hold paths. What comes from the environment
// is taken out of it: workers and loops, and what they start, would inherit it.

import { accessSync, constants, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Cluster, ClusterNode, ClusterOptions, NatsOptions } from '../cluster/index.js';
import { CodedError } from '../errors.js';
import { messageOf } from '../internal/index.js';

const secretVariable = 'MANYCORE_CLUSTER_SECRET';
const passwordVariable = 'MANYCORE_CLUSTER_PASSWORD';
const tokenVariable = 'MANYCORE_CLUSTER_TOKEN';

/** By the field that commander makes of each: the flag, what it takes, and what that is. */
const clusterFlags = {
  clusterName: ['cluster-name', 'name', 'which of the clusters there (default: manycore)'],
  clusterSecret: ['cluster-secret', 'file', `what all its nodes know (or ${secretVariable})`],
  clusterUser: ['cluster-user', 'name', 'who we are to the NATS server'],
  clusterPassword: ['cluster-password', 'file', `and our password (or ${passwordVariable})`],
  clusterToken: ['cluster-token', 'file', `or a token (or ${tokenVariable})`],
  clusterCreds: ['cluster-creds', 'file', 'or credentials as nsc writes them'],
  clusterTlsCa: [
    'cluster-tls-ca',
    'file',
    'TLS: the authority that signed its certificate, as PEM',
  ],
  clusterTlsCert: ['cluster-tls-cert', 'file', 'TLS: our certificate, as PEM'],
  clusterTlsKey: ['cluster-tls-key', 'file', 'and its key'],
} as const;

type ClusterField = keyof typeof clusterFlags;

export type ClusterFlags = { readonly [Field in ClusterField]?: string | undefined };

/** Each flag, without its dashes, with its field. */
export const clusterFields: ReadonlyMap<string, ClusterField> = new Map(
  fields().map((field) => [clusterFlags[field][0], field]),
);

function fields(): ClusterField[] {
  const isField = (name: string): name is ClusterField => name in clusterFlags;
  return Object.keys(clusterFlags).filter(isField);
}

/** For `--help`, and for commander to take. */
export function addClusterFlags(command: Command): Command {
  for (const [flag, value, what] of Object.values(clusterFlags)) {
    command.option(`--${flag} <${value}>`, what);
  }
  return command;
}

/** The first of these flags that was given, with its dashes. */
export function clusterFlagIn(flags: ClusterFlags): string | undefined {
  const given = fields().find((field) => flags[field] !== undefined);
  return given && `--${clusterFlags[given][0]}`;
}

/** `nats`: URLs with commas between them. Can be called once: see `takeSecrets`. Throws `OPTION_INVALID`. */
export function clusterOptions(nats: string, flags: ClusterFlags): ClusterOptions {
  const { secret, password, token } = takeSecrets();
  return {
    nats: {
      servers: nats.split(','),
      ...credentials(flags, password, token),
      tls: tlsOptions(flags),
    },
    name: flags.clusterName,
    secret: secretIn('clusterSecret', flags) ?? secret,
  };
}

/** What the environment has of them, and has no more afterwards. Processes that are started get what they need. */
function takeSecrets() {
  const {
    [secretVariable]: secret,
    [passwordVariable]: password,
    [tokenVariable]: token,
  } = process.env;
  for (const name of [secretVariable, passwordVariable, tokenVariable]) delete process.env[name];
  return { secret, password, token };
}

/** `password` and `token` are those of the environment. */
function credentials(
  flags: ClusterFlags,
  password: string | undefined,
  token: string | undefined,
): Partial<NatsOptions> {
  const { clusterUser: user } = flags;
  const pass = secretIn('clusterPassword', flags);
  if (user === undefined && pass !== undefined) throw needs('clusterPassword', 'clusterUser');
  const credsFile = readable('clusterCreds', flags);
  return {
    ...(user !== undefined && { user, pass: pass ?? password ?? missingPassword(user) }),
    token: secretIn('clusterToken', flags) ?? token,
    credsFile,
  };
}

function missingPassword(user: string): never {
  const way = `give --cluster-password FILE, or ${passwordVariable}`;
  throw new CodedError('OPTION_INVALID', `--cluster-user ${user} has no password: ${way}`);
}

/** `undefined` where no flag is about it: a URL may ask for TLS all the same. */
function tlsOptions(flags: ClusterFlags): NatsOptions['tls'] {
  const caFile = readable('clusterTlsCa', flags);
  const certFile = readable('clusterTlsCert', flags);
  const keyFile = readable('clusterTlsKey', flags);
  if (keyFile === undefined && certFile !== undefined)
    throw needs('clusterTlsCert', 'clusterTlsKey');
  if (certFile === undefined && keyFile !== undefined)
    throw needs('clusterTlsKey', 'clusterTlsCert');
  const given = Object.entries({ caFile, certFile, keyFile }).flatMap(([name, path]) =>
    path === undefined ? [] : [[name, path] as const],
  );
  return given.length === 0 ? undefined : Object.fromEntries(given);
}

function needs(given: ClusterField, missing: ClusterField): CodedError {
  const [[flag], [other, value]] = [clusterFlags[given], clusterFlags[missing]];
  const message = `--${flag} needs --${other} ${value.toUpperCase()}, too`;
  return new CodedError('OPTION_INVALID', message);
}

/** What is in the file that the flag names. */
function secretIn(field: ClusterField, flags: ClusterFlags): string | undefined {
  const file = flags[field];
  return file && attempt(field, 'holds it', () => readFileSync(file, 'utf8').trim());
}

/** The path of the file that the flag names: each loop reads it, and again for each connection. */
function readable(field: ClusterField, flags: ClusterFlags): string | undefined {
  const file = flags[field];
  if (file === undefined) return undefined;
  attempt(field, 'can be read', () => accessSync(file, constants.R_OK));
  return resolve(file);
}

function attempt<T>(field: ClusterField, what: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const [flag] = clusterFlags[field];
    const message = `--${flag} must be a file that ${what}: ${messageOf(cause)}`;
    throw new CodedError('OPTION_INVALID', message, { cause });
  }
}

/** On stdout who is there, comes and goes. */
export function printCluster(cluster: Cluster): void {
  const print = (what: string, { host, pid }: ClusterNode): void => {
    console.log(`${what}: ${host}, process ${pid} (${plural(cluster.nodes.length, 'other node')})`);
  };
  console.log(`in the cluster, with ${plural(cluster.nodes.length, 'other node')}`);
  cluster.on('join', (node) => print('joined', node));
  cluster.on('leave', (node) => print('left', node));
  cluster.closed.catch((error: unknown) => {
    console.error(`manycore: the cluster is left: ${messageOf(error)}`);
  });
}

export function plural(count: number, what: string): string {
  const many = what.endsWith('s') ? `${what}es` : `${what}s`;
  return `${count} ${count === 1 ? what : many}`;
}
