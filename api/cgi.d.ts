import { IncomingMessage, ServerResponse } from "node:http";
type FolderListener = (request: IncomingMessage, response: ServerResponse, next?: () => void) => void;
interface CgiOptions {
    readonly prefix?: string | undefined;
    readonly env?: Readonly<Record<string, string>> | undefined;
    readonly timeoutMs?: number | undefined;
    readonly maxPrograms?: number | undefined;
    readonly documentRoot?: string | URL | undefined;
}
declare function serveCgi(root: string | URL, options?: CgiOptions): FolderListener;
export { serveCgi };
export type { CgiOptions, FolderListener };
