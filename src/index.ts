// The front door: re-exports only.
export { CodedError, type ErrorCode, errorCodes, hasCode } from './errors.js';
