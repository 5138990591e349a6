// Adds one to each of 1 … 100 in parallel and prints the sum.
import { pmap } from 'manycore';

const numbers = Array.from({ length: 100 }, (_, index) => index + 1);
const added = await pmap(numbers, (number) => number + 1);

console.log(added.reduce((sum, number) => sum + number));
