// The kinds of values in the words of a TVar (crates/core/src/stm/value.rs), and the same numbers as tags in the
// bytes of larger values. Processes of one version share the memory: there is no compatibility to keep.

/** A new object is all zeroes. */
export const KIND_UNDEFINED = 0;
/** `lo`: the object that holds the bytes; `hi`: their number. */
export const KIND_BYTES = 1;
export const KIND_NULL = 2;
export const KIND_FALSE = 3;
export const KIND_TRUE = 4;
/** `lo`. */
export const KIND_INT32 = 5;
/** Bits of a float64, low half first. */
export const KIND_FLOAT64 = 6;
/** A signed integer of 64 bits. */
export const KIND_BIGINT64 = 7;
/** A TVar: its index, and the header that it had. */
export const KIND_TVAR = 8;
/** Collections, each named by the TVar that stands for it. */
export const KIND_SORTED_MAP = 32;
export const KIND_MAP = 33;
export const KIND_LIST = 34;
export const KIND_QUEUE = 35;
export const KIND_COUNTER = 36;
/** In a leaf of a map alone: a TVar that holds the value, and ends with the entry. */
export const KIND_OWN_TVAR = 9;

// Tags alone, each with a u32: the size in bytes, or the count.
export const TAG_LATIN = 16;
export const TAG_WIDE = 17;
/** Hexadecimal digits. */
export const TAG_BIGINT = 18;
export const TAG_ARRAY = 19;
/** Then for each field: its name as a string with its tag, its value. */
export const TAG_OBJECT = 20;
/** The same with the prototype `null`. */
export const TAG_BARE = 21;
export const TAG_UINT8_ARRAY = 22;

/** Largest value in bytes, its tags included. */
export const MAX_VALUE_BYTES = 65_536;
/** Deepest nesting. */
export const MAX_DEPTH = 256;
