// An operator, an account and a user of a NATS server, as its tool `nsc` makes them: each signs the next.
// Not here: their use in a program.

import { randomUUID } from 'node:crypto';

const clientName: string = '@nats-io/transport-node'; // its declarations are too loose for our compiler

/** A pair of keys of NATS. */
interface KeyPair {
  getPublicKey(): string;
  getSeed(): Uint8Array;
  sign(bytes: Uint8Array): Uint8Array;
}

interface Credentials {
  /** Configuration of a server with the account. */
  readonly config: string;
  /** Credentials of a user of this account, and of another account's. */
  readonly right: string;
  readonly wrong: string;
  /** Returns credentials of a user of this account, until a time in seconds. */
  until(seconds: number): string;
}

/** Returns the public key of a new user, and its seed. */
export async function makeNkey(): Promise<{ readonly key: string; readonly seed: string }> {
  const { nkeys } = await import(clientName);
  const user: KeyPair = nkeys.createUser();
  return { key: user.getPublicKey(), seed: Buffer.from(user.getSeed()).toString() };
}

export async function makeCredentials(): Promise<Credentials> {
  const { nkeys } = await import(clientName);
  const [operator, account, system, stranger]: KeyPair[] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createAccount(),
    nkeys.createAccount(),
  ];
  if (operator === undefined || account === undefined) throw new Error();
  if (system === undefined || stranger === undefined) throw new Error();
  const operatorToken = sign(operator, operator, 'operator', {});
  const limits = { subs: -1, data: -1, payload: -1, conn: -1, imports: -1, exports: -1, leaf: -1 };
  const stored = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };
  const accountToken = sign(operator, account, 'account', { limits: { ...limits, ...stored } });
  const systemToken = sign(operator, system, 'account', { limits }); // JetStream needs one
  const userOf = (signer: KeyPair, exp?: number): string => {
    const user: KeyPair = nkeys.createUser();
    const token = sign(signer, user, 'user', { subs: -1, data: -1, payload: -1 }, exp);
    const seed = Buffer.from(user.getSeed()).toString();
    return [
      ...['-----BEGIN NATS USER JWT-----', token, '------END NATS USER JWT------', ''],
      ...['-----BEGIN USER NKEY SEED-----', seed, '------END USER NKEY SEED------', ''],
    ].join('\n');
  };
  const config = [
    `operator: ${operatorToken}`,
    'resolver: MEMORY',
    `system_account: ${system.getPublicKey()}`,
    'resolver_preload: {',
    `  ${account.getPublicKey()}: ${accountToken}`,
    `  ${system.getPublicKey()}: ${systemToken}`,
    '}',
  ].join('\n');
  return {
    config,
    right: userOf(account),
    wrong: userOf(stranger),
    until: (seconds) => userOf(account, seconds),
  };
}

/** Returns the claims of `signer` about `subject`. `exp`: their end, in seconds. */
function sign(signer: KeyPair, subject: KeyPair, type: string, nats: object, exp?: number): string {
  const claims = {
    jti: randomUUID(),
    iat: Math.floor(Date.now() / 1000),
    ...(exp !== undefined && { exp }),
    iss: signer.getPublicKey(),
    name: type,
    sub: subject.getPublicKey(),
    nats: { ...nats, type, version: 2 },
  };
  const parts = [{ typ: 'JWT', alg: 'ed25519-nkey' }, claims];
  const text = parts.map((part) => base64url(JSON.stringify(part))).join('.');
  return `${text}.${base64url(signer.sign(Buffer.from(text)))}`;
}

function base64url(bytes: string | Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}
