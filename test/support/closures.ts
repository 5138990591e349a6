import { closureReader } from '../../src/context/closures/closure-reader.js';

/** For `skip` of tests of what native capture brings: false where it works, else the reason. */
export function withoutNativeCapture(): string | false {
  return closureReader() === undefined && 'captured variables are read by the inspector here';
}
