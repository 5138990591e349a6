import { IncomingMessage, ServerResponse } from "node:http";
type FolderListener = (request: IncomingMessage, response: ServerResponse, next?: () => void) => void;
interface StaticOptions {
    readonly index?: string | false | undefined;
    readonly listing?: boolean | undefined;
    readonly dotfiles?: "allow" | "deny" | "ignore" | undefined;
    readonly maxAgeMs?: number | undefined;
    readonly immutable?: boolean | undefined;
    readonly precompressed?: boolean | undefined;
}
declare function serveStatic(root: string | URL, options?: StaticOptions): FolderListener;
export { serveStatic };
export type { FolderListener, StaticOptions };
