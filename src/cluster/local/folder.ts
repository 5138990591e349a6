// The folder of a local bus: a socket for each member, in the private folder of the user. Nothing else is
// registered anywhere. A socket appears under its name once it is listened to, so one that refuses is left behind.

import { readdirSync, renameSync, rmSync } from 'node:fs';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { ownServers } from '../../agent/index.js';
import { isLeftSocket, messageOf, ownListening, privateFolder } from '../../lib/index.js';
import { refused } from '../errors.js';

/** The limit of the systems for the path of a socket is 104 bytes or more, with a zero at the end. */
const maxPathBytes = 103;
const ending = '.sock';
const newEnding = '.new';

export class BusFolder {
  readonly #path: string;

  /** Creates it where it is missing. Throws `RUNTIME_FOLDER_REFUSED`. */
  constructor(name: string) {
    this.#path = privateFolder(`bus-${name}`);
  }

  /** `id`: of a member; the number of its process follows it in the name. */
  pathOf(id: string, pid: number): string {
    return join(this.#path, `${id}-${pid}${ending}`);
  }

  /** Returns the paths of the sockets by the ids of their members. */
  members(): Map<string, string> {
    const found = new Map<string, string>();
    for (const file of readdirSync(this.#path)) {
      const [, id] = /^([0-9a-f]+-\d+)-\d+\.sock$/.exec(file) ?? [];
      const path = join(this.#path, file);
      if (id !== undefined) found.set(id, path);
      else if (file.endsWith(newEnding) && isLeftSocket(path)) removeSocket(path);
    }
    return found;
  }

  /** Rejects with `CLUSTER_REFUSED` where no socket can be made. */
  async listen(server: Server, path: string): Promise<void> {
    const early = path.slice(0, -ending.length) + newEnding;
    if (Buffer.byteLength(path) > maxPathBytes) {
      const way = 'set XDG_RUNTIME_DIR to a shorter path, or give the cluster a shorter name';
      throw refused(`${path} is too long for a socket: ${way}`);
    }
    ownServers.add(server);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(ownListening({ path: early }), () => {
        server.off('error', reject);
        resolve();
      });
    }).catch((cause: unknown) => {
      const message = `no socket for other programs: ${messageOf(cause)}`;
      throw refused(`${message}: see that ${this.#path} can be written`, cause);
    });
    renameSync(early, path);
  }
}

/** The folder may be gone, or this process may have dropped its rights: then another member removes it. */
export function removeSocket(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {}
}
