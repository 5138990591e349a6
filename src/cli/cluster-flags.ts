// Cluster flags of `run` and `worker`, and the lines that they print of a cluster. Command lines are public,
// so secrets come from files, whose paths the flags hold, or from the environment. Secrets are removed from
// the environment: workers, loops and their children would inherit them.

import { accessSync, constants, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Cluster, ClusterNode, ClusterOptions, NatsOptions } from '../cluster/index.js';
import { CodedError } from '../errors.js';
import { messageOf } from '../lib/index.js';

const secretVariable = 'MANYCORE_CLUSTER_SECRET';
const passwordVariable = 'MANYCORE_CLUSTER_PASSWORD';
const tokenVariable = 'MANYCORE_CLUSTER_TOKEN';

/** `[flag, value, description]`, by the field that commander makes of the flag. */
const clusterFlags = {
  clusterName: ['cluster-name', 'name', 'name of the cluster (default: manycore)'],
  clusterSecret: [
    'cluster-secret',
    'file',
    `file with the shared secret of the cluster (or ${secretVariable})`,
  ],
  clusterUser: ['cluster-user', 'name', 'user name for the NATS server'],
  clusterPassword: [
    'cluster-password',
    'file',
    `file with the password for the NATS server (or ${passwordVariable})`,
  ],
  clusterToken: [
    'cluster-token',
    'file',
    `file with the token for the NATS server (or ${tokenVariable})`,
  ],
  clusterCreds: [
    'cluster-creds',
    'file',
    'credentials file for the NATS server, as written by nsc',
  ],
  clusterNkey: ['cluster-nkey', 'file', 'file with the seed of an nkey for the NATS server'],
  clusterTlsCa: ['cluster-tls-ca', 'file', 'TLS certificate authority of the NATS server (PEM)'],
  clusterTlsCert: ['cluster-tls-cert', 'file', 'TLS client certificate for the NATS server (PEM)'],
  clusterTlsKey: ['cluster-tls-key', 'file', 'TLS private key of the client certificate (PEM)'],
} as const;

type ClusterField = keyof typeof clusterFlags;

export type ClusterFlags = { readonly [Field in ClusterField]?: string | undefined };

/** Fields by flag, without its dashes. */
export const clusterFields: ReadonlyMap<string, ClusterField> = new Map(
  fields().map((field) => [clusterFlags[field][0], field]),
);

function fields(): ClusterField[] {
  const isField = (name: string): name is ClusterField => name in clusterFlags;
  return Object.keys(clusterFlags).filter(isField);
}

/** Adds the flags to a command. */
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

/** The options of `--cluster local`. Throws `OPTION_INVALID` for a flag that is for NATS alone. */
export function localOptions({ clusterName: name, ...others }: ClusterFlags): ClusterOptions {
  takeSecrets(); // meant for other commands
  const flag = clusterFlagIn(others);
  if (flag === undefined) return { transport: 'local', name };
  const message = `${flag} is for NATS: leave it out with --cluster local`;
  throw new CodedError('OPTION_INVALID', message);
}

/** Takes the secrets out of the environment. Started processes get those that they need by other ways. */
function takeSecrets() {
  const {
    [secretVariable]: secret,
    [passwordVariable]: password,
    [tokenVariable]: token,
  } = process.env;
  for (const name of [secretVariable, passwordVariable, tokenVariable]) delete process.env[name];
  return { secret, password, token };
}

/** `password` and `token` come from the environment. */
function credentials(
  flags: ClusterFlags,
  password: string | undefined,
  token: string | undefined,
): Partial<NatsOptions> {
  const { clusterUser: user } = flags;
  const pass = secretIn('clusterPassword', flags);
  if (user === undefined && pass !== undefined) throw needs('clusterPassword', 'clusterUser');
  const credsFile = readable('clusterCreds', flags);
  const nkeyFile = readable('clusterNkey', flags);
  return {
    ...(user !== undefined && { user, pass: pass ?? password ?? missingPassword(user) }),
    token: secretIn('clusterToken', flags) ?? token,
    credsFile,
    nkeyFile,
  };
}

function missingPassword(user: string): never {
  const way = `give --cluster-password FILE, or ${passwordVariable}`;
  throw new CodedError('OPTION_INVALID', `--cluster-user ${user} has no password: ${way}`);
}

/** `undefined`: no TLS flag was given. A URL may still select TLS. */
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

/** Reads the file that the flag names. */
function secretIn(field: ClusterField, flags: ClusterFlags): string | undefined {
  const file = flags[field];
  return file && attempt(field, 'holds it', () => readFileSync(file, 'utf8').trim());
}

/** Checks the file that the flag names; returns its path. Each loop reads it for each connection. */
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

/** Prints the nodes of the cluster on stdout, and each that joins or leaves. */
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
