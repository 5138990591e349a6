// The first byte of every encoded value, and what follows it. Numbers are little-endian. The layout
// is between processes of one manycore version only: there is no compatibility to keep.
// Not here: writing (write.ts), reading (read.ts), the kinds of byte views (views.ts).

/** `undefined`, `null`, `false`, `true`: nothing follows. */
export const TAG_UNDEFINED = 0;
export const TAG_NULL = 1;
export const TAG_FALSE = 2;
export const TAG_TRUE = 3;
/** i32. Its own tag, because an integer that arrives as a double slows the user's code down. */
export const TAG_INT32 = 4;
/** f64, all bits kept but the payload of a NaN. */
export const TAG_FLOAT64 = 5;
/** i64. */
export const TAG_BIGINT64 = 6;
/** u32 count, then that many characters: an optional `-` and hexadecimal digits. */
export const TAG_BIGINT = 7;
/** u8 count, then one byte per UTF-16 unit, each below 256. */
export const TAG_STRING_SHORT = 8;
/** u32 count, then one byte per UTF-16 unit. */
export const TAG_STRING_LATIN = 9;
/** u32 size in bytes, then two bytes per UTF-16 unit: lone surrogates survive. */
export const TAG_STRING_WIDE = 10;
/** u32 count, then that many values. */
export const TAG_ARRAY = 11;
/** Keys (see below), then a value for each key. Prototype `Object.prototype`, or `null`. */
export const TAG_OBJECT = 12;
export const TAG_OBJECT_BARE = 13;
/** u8 view kind, u32 size in bytes, the bytes. */
export const TAG_BYTES = 14;
/** u8 view kind, u8 shared, i32 owner, f64 each: block offset, block size, view offset, view size. */
export const TAG_BLOCK = 15;
/** u32 size in bytes, then bytes that only the slow codec understands. */
export const TAG_SLOW = 16;

// Keys: u32 size in bytes of all that follows up to the first value, u32 count of keys, then each key:
//   u8 below KEY_LATIN: so many one-byte characters follow;
//   KEY_LATIN: u32 count, one-byte characters;
//   KEY_WIDE: u32 size in bytes, two-byte characters.
// All keys stand in front of the values, so that the reader recognises a shape by comparing bytes
// (shapes.ts).
export const KEY_LATIN = 254;
export const KEY_WIDE = 255;

/** Deepest nesting that is written, and accepted when read: keeps the stack safe. */
export const MAX_DEPTH = 256;
