// The port of an exported app that is given none.

const defaultPort = 3000;

/** Returns `PORT`, else 3000. Ignores a `PORT` that is no number, as the path of a socket: it is for the program alone. */
export function portOfEnvironment(): number {
  const text = process.env['PORT'] ?? '';
  return /^\d+$/.test(text) ? Number(text) : defaultPort;
}
