// Module for piscina's threads.
export default (number) => number + 1;
