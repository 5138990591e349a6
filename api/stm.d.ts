interface TVar<T> {
    get(): T;
    set(value: T): void;
    update(change: (value: T) => T): T;
    peek(): T;
}
declare function tvar<T>(initial: T): TVar<T>;
declare function atomically<T>(fn: () => T): T;
declare function retry(): never;
declare function check(condition: boolean): void;
declare function orElse<T>(...ways: readonly (() => T)[]): T;
declare function nested<T>(fn: () => T): T;
declare function afterCommit(effect: () => void): void;
declare function free(variable: TVar<unknown>): void;
interface WhenOptions {
    readonly signal?: AbortSignal;
    readonly timeoutMs?: number;
}
declare function atomicallyWhen<T>(fn: () => T, options?: WhenOptions): Promise<T>;
export { afterCommit, atomically, atomicallyWhen, check, free, nested, orElse, retry, tvar };
export type { TVar, WhenOptions };
