// Sixteen million numbers in shared memory, mapped where they are: nothing is copied, and each worker
// writes its part.
import { pmap, shared } from 'manycore';

const samples = new Float32Array(shared(64 * 1024 * 1024).buffer);
for (let at = 0; at < samples.length; at += 1) samples[at] = at % 100;

await pmap(samples, (sample) => Math.sqrt(sample), { into: samples });

console.log(samples.length, samples[4], samples[81]);
