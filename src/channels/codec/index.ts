// Values in frames.

export type { CodecOptions, Encoded, Packed, SlowCodec } from './codec.js';
export { Codec, isImmutable } from './codec.js';
