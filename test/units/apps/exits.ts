// A unit that ends its process soon after each start.
export function start(): void {
  setTimeout(() => process.exit(7), 50);
}
