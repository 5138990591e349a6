// The one loop of a server that runs the functions of `onlyOne`. Loops stand as candidates; the supervisor elects one
// of a process that serves, and the next one only after the elected loop has resigned or ended. So there are
// never two: a process has ended when the system says so, and a loop when its thread has. A blocked loop stays the
// elected one until it returns or its process has ended, because its functions may be what blocks it.
// Not here: the functions (loop/candidate.ts).

import type { ToLoop } from '../protocol.js';
import type { Link } from '../shared/link.js';

/** A process of the server, which forwards messages to its loops. */
interface CandidateProcess extends Link<ToLoop> {
  readonly generation: number;
  readonly state: string;
}

interface Candidate {
  readonly process: CandidateProcess;
  /** The loop's number in its process, which is not used again. */
  readonly loop: number;
}

export class Leadership {
  /** In the order in which they stood. */
  readonly #candidates = new Set<Candidate>();
  #elected: Candidate | undefined;

  /** Adds a loop, once. */
  stand(process: CandidateProcess, loop: number): void {
    if (this.#find(process, loop).length > 0) return;
    this.#candidates.add({ process, loop });
    this.elect();
  }

  #find(process: CandidateProcess, loop: number | undefined): Candidate[] {
    return [...this.#candidates].filter(
      (each) => each.process === process && (loop === undefined || each.loop === loop),
    );
  }

  /** Removes a loop, or every loop of a process, that has resigned or ended. */
  leave(process: CandidateProcess, loop: number | undefined): void {
    for (const each of this.#find(process, loop)) {
      this.#candidates.delete(each);
      if (this.#elected === each) this.#elected = undefined;
    }
    this.elect();
  }

  /**
   * Elects a loop if there is none; to be called when a process begins to serve. The newest generation comes first:
   * during a reload the others end soon.
   */
  elect(): void {
    if (this.#elected !== undefined) return;
    const serving = [...this.#candidates].filter(({ process }) => process.state === 'ready');
    const [next] = serving.sort((a, b) => b.process.generation - a.process.generation);
    if (next === undefined) return;
    this.#elected = next;
    next.process.post({ loop: next.loop, body: { type: 'elected' } });
  }
}
