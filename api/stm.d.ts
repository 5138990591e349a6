declare function atomically<T>(fn: () => T): T;
declare function retry(): never;
declare function check(condition: boolean): void;
declare function orElse<T>(...ways: readonly (() => T)[]): T;
declare function nested<T>(fn: () => T): T;
declare function afterCommit(effect: () => void): void;
interface TCounter {
    add(change?: number): void;
    readonly value: number;
}
declare function tcounter(initial?: number): TCounter;
interface TList<K extends number | string> {
    add(key: K): boolean;
    has(key: K): boolean;
    delete(key: K): boolean;
    keys(): K[];
    [Symbol.iterator](): IterableIterator<K>;
}
declare function tlist<K extends number | string>(): TList<K>;
interface TQueue<T> {
    put(item: T): void;
    take(): T;
    peek(): T | undefined;
    readonly size: number;
}
interface QueueOptions {
    readonly capacity?: number;
}
declare function tqueue<T>(options?: QueueOptions): TQueue<T>;
interface TMap<K extends number | string, V> {
    get(key: K): V | undefined;
    has(key: K): boolean;
    set(key: K, value: V): this;
    update(key: K, change: (value: V | undefined) => V): V;
    delete(key: K): boolean;
    clear(): void;
    entries(): [
        K,
        V
    ][];
    keys(): K[];
    values(): V[];
    [Symbol.iterator](): IterableIterator<[
        K,
        V
    ]>;
    readonly size: number;
}
interface KeyRange<K> {
    readonly from?: K;
    readonly to?: K;
    readonly limit?: number;
    readonly reverse?: boolean;
}
interface TSortedMap<K extends number | string, V> extends TMap<K, V> {
    entries(range?: KeyRange<K>): [
        K,
        V
    ][];
    keys(range?: KeyRange<K>): K[];
    values(range?: KeyRange<K>): V[];
}
declare function tsortedMap<K extends number | string, V>(): TSortedMap<K, V>;
declare function tmap<K extends number | string, V>(): TMap<K, V>;
interface StmStats {
    readonly threads: number;
    readonly memoryBytes: number;
    readonly commits: number;
    readonly conflicts: number;
    readonly thefts: number;
    readonly recoveries: number;
    readonly sleeps: number;
    readonly contended: readonly StmContention[];
}
interface StmContention {
    readonly name: string | undefined;
    readonly kind: StmKind | undefined;
    readonly conflicts: number;
}
type StmKind = "TVar" | "TMap" | "TSortedMap" | "TList" | "TQueue" | "TCounter";
declare function stmStats(): StmStats;
interface TVar<T> {
    get(): T;
    set(value: T): void;
    update(change: (value: T) => T): T;
    peek(): T;
}
declare function tvar<T>(initial: T): TVar<T>;
type Shared = TVar<unknown> | TMap<number | string, unknown> | TList<number | string> | TQueue<unknown> | TCounter;
declare function free(shared: Shared): void;
declare function named<T extends Shared>(name: string, make: () => T): T;
interface WhenOptions {
    readonly signal?: AbortSignal;
    readonly timeoutMs?: number;
}
declare function atomicallyWhen<T>(fn: () => T, options?: WhenOptions): Promise<T>;
export { afterCommit, atomically, atomicallyWhen, check, free, named, nested, orElse, retry, stmStats, tcounter, tlist, tmap, tqueue, tsortedMap, tvar };
export type { KeyRange, QueueOptions, Shared, StmContention, StmKind, StmStats, TCounter, TList, TMap, TQueue, TSortedMap, TVar, WhenOptions };
