// Adds one to each of 1 … 100 and prints the sum, on one core.
const numbers = Array.from({ length: 100 }, (_, index) => index + 1);
const added = numbers.map((number) => number + 1);

console.log(added.reduce((sum, number) => sum + number));
