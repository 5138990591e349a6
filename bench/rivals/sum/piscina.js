// Adds one to each of 1 … 100 and prints the sum, with piscina: the mapper is a file of its own.
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';

const pool = new Piscina({ filename: fileURLToPath(new URL('./add-one.js', import.meta.url)) });
const numbers = Array.from({ length: 100 }, (_, index) => index + 1);
const added = await Promise.all(numbers.map((number) => pool.run(number)));
console.log(added.reduce((sum, number) => sum + number));

await pool.destroy();
