// Values in frames.

export type { CodecOptions, Packed, SlowCodec } from './codec.js';
export { Codec, isImmutable } from './codec.js';
