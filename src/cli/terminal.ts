// A terminal tells all of its foreground of Ctrl-C: this command and the program that it runs. Who forwards
// what it hears would tell the program twice, and a server takes the second as "at once".

/** Whether the program that runs beside us in the foreground hears this signal only from us. */
export function needsForwarding(signal: NodeJS.Signals): boolean {
  return signal !== 'SIGINT' || !hasTerminal();
}

function hasTerminal(): boolean {
  return [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);
}
