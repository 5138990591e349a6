// Maps a source without an end, in order. The source is read only as far ahead as the reader and the workers
// need, and leaving the loop closes it.
import { createHash } from 'node:crypto';
import { pmap } from 'manycore';

async function* blocks() {
  try {
    for (let number = 0; ; number += 1) yield `block ${number}`;
  } finally {
    console.log('the source is closed');
  }
}

/** Returns the number of hashes until one begins with three zeros. */
function findProof(text) {
  for (let nonce = 0; ; nonce += 1) {
    const hash = createHash('sha256').update(`${text} ${nonce}`).digest('hex');
    if (hash.startsWith('000')) return { text, nonce };
  }
}

let found = 0;
for await (const { text, nonce } of pmap.stream(blocks(), findProof, { lead: 32 })) {
  console.log(text, nonce);
  found += 1;
  if (found === 5) break;
}
