// Whether this code runs inside a host. The host's entry says so before it runs anything of the user;
// the library imported by a task is the same copy, so it finds the mark here.

let isHost = false;
let number: number | undefined;

/** `ofHost`: its number, as whoever started it counts. */
export function markAsHost(ofHost: number): void {
  isHost = true;
  number = ofHost;
}

/** `undefined` where this is no host. */
export function hostNumber(): number | undefined {
  return number;
}

export function isInsideHost(): boolean {
  return isHost;
}
