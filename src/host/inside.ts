// Whether this code runs inside a host. The host's entry says so before it runs anything of the user;
// the library imported by a task is the same copy, so it finds the mark here.

let isHost = false;

export function markAsHost(): void {
  isHost = true;
}

export function isInsideHost(): boolean {
  return isHost;
}
