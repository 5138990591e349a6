// Node's cryptography, read when it is needed: it is large, and few workers need it.

import type * as Crypto from 'node:crypto';

export function nodeCrypto(): typeof Crypto {
  return process.getBuiltinModule('node:crypto');
}
