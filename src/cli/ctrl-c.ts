// A terminal sends SIGINT to its whole foreground group at Ctrl-C: this command and the program that it runs.
// A command that forwards it would signal the program twice, and a server takes the second as "at once".

/** True: the program beside this command in the foreground does not get this signal from the terminal. */
export function needsForwarding(signal: NodeJS.Signals): boolean {
  return signal !== 'SIGINT' || !hasTerminal();
}

function hasTerminal(): boolean {
  return [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);
}
