// What piscina's threads load.
export default (number) => number + 1;
