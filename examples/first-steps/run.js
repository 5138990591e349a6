// One call in another process, with everything that the function captured.
import { createHash } from 'node:crypto';
import { run } from 'manycore';

const salt = 'pepper';
const rounds = 200_000;

const digest = await run((password) => {
  let bytes = Buffer.from(password + salt);
  for (let round = 0; round < rounds; round += 1) {
    bytes = createHash('sha256').update(bytes).digest();
  }
  return bytes.toString('hex');
}, 'secret');

console.log(digest);
