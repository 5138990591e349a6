// Reads the captures of a function by an inspector session of this thread on itself. Every `post` of such a
// session completes before it returns, so a capture is a plain synchronous call of 40-50 µs. Neither the
// Debugger nor the Runtime domain is enabled, so the program is not slowed. Scope objects hold the real
// values. They are snapshots: a later write is not seen, so nothing read here is kept. Long (over 400 lines),
// because all requests to one session are one subject.
// Not here: which names matter (code.ts), which module a script is (scripts.ts).

import type { Debugger, Runtime, Session } from 'node:inspector';
import { createRequire } from 'node:module';
import { isMainThread } from 'node:worker_threads';
import { CodedError } from '../../errors.js';
import { defineOwn, jsonOf } from '../../lib/index.js';
import type { AnyFunction } from '../types.js';
import { withBareObjects } from './bare-objects.js';

/** The position that V8 reports for a function: zero-based, at the `(` of its parameters. */
export interface FunctionLocation {
  readonly scriptId: string;
  readonly line: number;
  readonly column: number;
}

/** The data of V8 on a function. `scopes` are innermost first, without the global object. */
export interface Capture {
  readonly scopes: readonly object[];
  /** The last of them, where it holds the `let`, `const` and `class` at the top of all classic scripts. */
  readonly ofScripts: object | undefined;
  /** The global object of the function, which is not ours in a context of node:vm. */
  readonly global: object;
  readonly location: FunctionLocation | undefined;
  readonly bound: BoundParts | undefined;
  /** The `this` around an arrow that uses it, where it was read natively. */
  readonly outerThis?: { readonly value: unknown };
}

export interface BoundParts {
  readonly target: unknown;
  readonly boundThis: unknown;
  readonly boundArguments: readonly unknown[];
}

/** The source of a script. One compiled for a position further down or right has that much text before it. */
export interface RunningSource {
  readonly text: string;
  /** Lines at its start above the line that V8 counts as first: a wrapper around a function of that line. */
  readonly linesAbove: number;
}

interface Holder {
  fn: unknown;
  out: unknown;
}

const objectGroup = 'manycore';
const holderName = Symbol.for('manycore.inspector.holder');

type InspectorModule = typeof import('node:inspector');

let self: Inspector | undefined;
let refusal: CodedError | undefined;

/** The inspector of this thread. Throws `TRANSFER_UNREADABLE` where there is none. */
export function inspectSelf(): Inspector {
  if (self !== undefined) return self;
  if (refusal !== undefined) throw refusal;
  try {
    self = new Inspector(inspectorModule());
    return self;
  } catch (cause) {
    refusal = new CodedError(
      'TRANSFER_UNREADABLE',
      'this process may not inspect itself, so the captures of a function cannot be read: ' +
        'under --permission add --allow-inspector (Node 24 and later), or pass the values as ' +
        'arguments, or use task(moduleUrl, exportName)',
      { cause },
    );
    throw refusal;
  }
}

function inspectorModule(): InspectorModule {
  return createRequire(import.meta.url)('node:inspector');
}

let addressOf: (() => string | undefined) | undefined;

/** True: a debugger may be attached to this thread. Only in the main thread Node gives the address for it. */
export function mayHaveDebugger(): boolean {
  if (!isMainThread) return true;
  try {
    addressOf ??= inspectorModule().url;
  } catch {
    addressOf = () => undefined; // a Node without an inspector
  }
  return addressOf() !== undefined;
}

/** True: a capture can work here. Never throws. */
export function canInspect(): boolean {
  try {
    inspectSelf();
    return true;
  } catch {
    return false;
  }
}

type Properties = Runtime.GetPropertiesReturnType & {
  readonly privateProperties?: readonly { readonly name: string; readonly value?: RemoteValue }[];
};
type Called = Runtime.CallFunctionOnReturnType;

interface RemoteValue {
  readonly objectId?: string | undefined;
  readonly value?: unknown;
  readonly unserializableValue?: string | undefined;
}

export class Inspector {
  readonly #session: Session;
  readonly #holder: Holder = { fn: undefined, out: undefined };
  readonly #holderId: string;

  constructor(module: InspectorModule) {
    this.#session = new module.Session();
    this.#session.connect();
    const key = `Symbol.for(${jsonOf(holderName.description)})`;
    // The session evaluates in the main context, and test runners load us into one of node:vm. Node's module
    // is the one object that both reach.
    defineOwn(module, holderName, { value: this.#holder, configurable: true });
    try {
      this.#holderId = withBareObjects(() =>
        this.#evaluate(`process.getBuiltinModule('node:inspector')[${key}]`),
      );
    } finally {
      Reflect.deleteProperty(module, holderName);
    }
  }

  #evaluate(expression: string): string {
    let id: string | undefined;
    this.#session.post('Runtime.evaluate', { expression }, (error, reply) => {
      if (error === null) id = reply.result.objectId;
    });
    if (id === undefined) throw new Error('the inspector did not find the library in its context');
    return id;
  }

  /** The present scopes, place and bound parts of `fn`. */
  capture(fn: AnyFunction): Capture {
    return withBareObjects(() => {
      try {
        const parts = this.#internals(fn);
        return {
          ...this.#scopesOf(parts),
          location: locationOf(parts.get('[[FunctionLocation]]')?.value),
          bound: this.#boundOf(parts),
        };
      } finally {
        this.#release();
      }
    });
  }

  /** Names of each `let`, `const` and `class` at the top of a classic script of the main context. */
  scriptVariables(): readonly string[] {
    return withBareObjects(() => {
      let names: readonly string[] | undefined;
      this.#session.post('Runtime.globalLexicalScopeNames', {}, (error, reply) => {
        if (error === null) names = reply.names;
      });
      if (names === undefined) throw silent();
      return names;
    });
  }

  /** The position where `fn` was written, and nothing else of it. */
  locate(fn: AnyFunction): FunctionLocation | undefined {
    return withBareObjects(() => {
      try {
        return locationOf(this.#internals(fn).get('[[FunctionLocation]]')?.value);
      } finally {
        this.#release();
      }
    });
  }

  /** Values of the private static fields of a class, by name without the `#`. */
  privateStatics(fn: AnyFunction): Map<string, unknown> {
    return withBareObjects(() => {
      this.#holder.fn = fn;
      const found = new Map<string, unknown>();
      try {
        const objectId = this.#call('function(){return this.fn}');
        if (objectId === undefined) return found;
        const remote: [string, RemoteValue][] = [];
        const wanted = { objectId, ownProperties: true };
        this.#session.post('Runtime.getProperties', wanted, (error, reply?: Properties) => {
          if (error !== null || reply === undefined) return;
          for (const { name, value } of reply.privateProperties ?? []) {
            if (value !== undefined) remote.push([name.slice(1), value]);
          }
        });
        for (const [name, value] of remote) found.set(name, this.#valueOf(value));
        return found;
      } finally {
        this.#release();
      }
    });
  }

  #valueOf({ objectId, value, unserializableValue }: RemoteValue): unknown {
    if (objectId !== undefined) return this.#fetch(objectId);
    if (unserializableValue === undefined) return value;
    if (unserializableValue.endsWith('n')) return BigInt(unserializableValue.slice(0, -1));
    return Number(unserializableValue); // -0, NaN, Infinity
  }

  /** The target of a Proxy; `undefined` when it was revoked. */
  proxyTarget(proxy: object): unknown {
    return withBareObjects(() => {
      try {
        const target = this.#internals(proxy).get('[[Target]]')?.objectId;
        return target === undefined ? undefined : this.#fetch(target);
      } finally {
        this.#release();
      }
    });
  }

  #release(): void {
    this.#session.post('Runtime.releaseObjectGroup', { objectGroup });
    this.#holder.fn = undefined;
    this.#holder.out = undefined;
  }

  #internals(fn: object): Map<string, RemoteValue> {
    this.#holder.fn = fn;
    const functionId = this.#call('function(){return this.fn}');
    const found = new Map<string, RemoteValue>();
    if (functionId === undefined) throw silent();
    const wanted = { objectId: functionId, ownProperties: true };
    this.#session.post('Runtime.getProperties', wanted, (error, reply?: Properties) => {
      if (error !== null || reply === undefined) return;
      for (const { name, value } of reply.internalProperties ?? []) {
        if (value !== undefined) found.set(name, value);
      }
    });
    return found;
  }

  #call(functionDeclaration: string): string | undefined {
    let id: string | undefined;
    const request = { objectId: this.#holderId, functionDeclaration, objectGroup };
    this.#session.post('Runtime.callFunctionOn', request, (error, reply?: Called) => {
      if (error === null) id = reply?.result.objectId;
    });
    return id;
  }

  /** Returns the real object of a remote id. */
  #fetch(objectId: string): unknown {
    this.#holder.out = undefined;
    this.#callWithHolder(objectId, this.#holderId);
    return this.#holder.out;
  }

  #callWithHolder(objectId: string, holderId: string): void {
    const functionDeclaration = 'function(h){"use strict";h.out=this}'; // or a symbol would be boxed
    const request = {
      objectId,
      functionDeclaration,
      arguments: [{ objectId: holderId }],
      objectGroup,
    };
    this.#session.post('Runtime.callFunctionOn', request, () => {});
  }

  #scopesOf(
    parts: ReadonlyMap<string, RemoteValue>,
  ): Pick<Capture, 'scopes' | 'ofScripts' | 'global'> {
    const id = parts.get('[[Scopes]]')?.objectId;
    const list = id === undefined ? undefined : this.#fetch(id);
    const scopes: object[] = [];
    let ofScripts: object | undefined;
    let global: object = globalThis;
    if (!Array.isArray(list)) return { scopes, ofScripts, global };
    // V8's list has no prototype, so it has no methods.
    for (let index = 0; index < list.length; index += 1) {
      const entry: unknown = list[index];
      if (typeof entry !== 'object' || entry === null || !('object' in entry)) continue;
      if (typeof entry.object !== 'object' || entry.object === null) continue;
      const kind = 'description' in entry ? entry.description : undefined;
      if (kind === 'Script') ofScripts = entry.object;
      if (kind === 'Global') global = entry.object;
      else scopes.push(entry.object);
    }
    return { scopes, ofScripts, global };
  }

  #boundOf(parts: ReadonlyMap<string, RemoteValue>) {
    const target = parts.get('[[TargetFunction]]')?.objectId;
    if (target === undefined) return undefined;
    const read = (name: string): unknown => {
      const part = parts.get(name);
      return part === undefined ? undefined : this.#valueOf(part);
    };
    const list = read('[[BoundArgs]]');
    return {
      target: this.#fetch(target),
      boundThis: read('[[BoundThis]]'),
      boundArguments: Array.isArray(list) ? Array.from<unknown>(list) : [],
    };
  }

  /**
   * `this` in the innermost running frame whose function is at a position that `isFrame` accepts. Stops this
   * thread in the debugger for that: 2-5 ms, so only for functions that need it.
   */
  thisOfFrame(isFrame: (at: FunctionLocation) => boolean): { readonly value: unknown } | undefined {
    return withBareObjects(() => {
      let found: { readonly value: unknown } | undefined;
      const onPaused = ({ params }: { params: Debugger.PausedEventDataType }): void => {
        const frame = params.callFrames.find(({ functionLocation }) => {
          const at = locationOf(functionLocation);
          return at !== undefined && isFrame(at);
        });
        if (frame === undefined) return;
        const { objectId } = frame.this;
        found =
          objectId === undefined
            ? { value: this.#valueOf(frame.this) }
            : this.#fetchFromFrame(objectId, params);
      };
      this.#session.once('Debugger.paused', onPaused);
      this.#session.post('Debugger.enable');
      try {
        pause(this.#holder);
      } finally {
        this.#session.post('Debugger.disable');
        this.#session.removeListener('Debugger.paused', onPaused);
      }
      return found;
    });
  }

  /**
   * The real object behind an id that a frame has. V8 separates the ids of each context of node:vm, so our
   * own frame names the holder anew. `undefined` for a frame of another context.
   */
  #fetchFromFrame(
    objectId: string,
    { callFrames }: Debugger.PausedEventDataType,
  ): { readonly value: unknown } | undefined {
    const callFrameId = callFrames[0]?.callFrameId;
    if (callFrameId === undefined) return undefined;
    let holderId: string | undefined;
    const wanted = { callFrameId, expression: 'holder', objectGroup };
    this.#session.post('Debugger.evaluateOnCallFrame', wanted, (error, reply?: Called) => {
      if (error === null) holderId = reply?.result.objectId;
    });
    const nothing = {};
    this.#holder.out = nothing;
    if (holderId !== undefined) this.#callWithHolder(objectId, holderId);
    return this.#holder.out === nothing ? undefined : { value: this.#holder.out };
  }

  /** The URL of every script whose functions ran, by script id; 5 ms, so callers cache. */
  scriptUrls(): Map<string, string> {
    return withBareObjects(() => {
      const urls = new Map<string, string>();
      this.#session.post('Profiler.getBestEffortCoverage', (error, reply) => {
        if (error !== null) return;
        for (const { scriptId, url } of reply.result) urls.set(scriptId, url);
      });
      return urls;
    });
  }

  /** The URL of every script; enables the debugger for the moment: 15 ms. */
  allScriptUrls(): Map<string, string> {
    return withBareObjects(() => {
      const urls = new Map<string, string>();
      const onScript = ({ params }: { params: Debugger.ScriptParsedEventDataType }): void => {
        urls.set(params.scriptId, params.url);
      };
      this.#session.on('Debugger.scriptParsed', onScript);
      this.#session.post('Debugger.enable');
      this.#session.post('Debugger.disable');
      this.#session.removeListener('Debugger.scriptParsed', onScript);
      return urls;
    });
  }

  /**
   * The sources that V8 runs, which differ from the files where a loader compiled them. Enables the debugger
   * for the moment of the call: 15 ms and more, so callers request many at once.
   */
  scriptSources(scriptIds: readonly string[]): Map<string, RunningSource> {
    return withBareObjects(() => {
      const wanted = new Set(scriptIds);
      const starts = new Map<string, readonly [line: number, column: number]>();
      const onScript = ({ params }: { params: Debugger.ScriptParsedEventDataType }): void => {
        const { scriptId, startLine, startColumn } = params;
        if (wanted.has(scriptId)) starts.set(scriptId, [startLine, startColumn]);
      };
      const sources = new Map<string, RunningSource>();
      this.#session.on('Debugger.scriptParsed', onScript);
      this.#session.post('Debugger.enable');
      for (const scriptId of wanted) {
        this.#session.post('Debugger.getScriptSource', { scriptId }, (error, reply) => {
          if (error !== null) return;
          const [line, column] = starts.get(scriptId) ?? [0, 0];
          const before = '\n'.repeat(Math.max(0, line)) + ' '.repeat(Math.max(0, column));
          sources.set(scriptId, {
            text: before + reply.scriptSource,
            linesAbove: Math.max(0, -line),
          });
        });
      }
      this.#session.post('Debugger.disable');
      this.#session.removeListener('Debugger.scriptParsed', onScript);
      return sources;
    });
  }
}

/** An empty capture would be wrong: a function would go without its variables. */
function silent(): CodedError {
  return new CodedError(
    'TRANSFER_UNREADABLE',
    'the captures of a function cannot be read: the inspector does not answer; is Object.prototype ' +
      'changed, and frozen with that? Delete what was added to it, or move the function into a ' +
      'module and use task(moduleUrl, exportName)',
  );
}

/** The session finds `holder` in the frame of this function, by its name. */
function pause(holder: Holder): Holder {
  // biome-ignore lint/suspicious/noDebugger: stops only while our own session listens
  debugger;
  return holder;
}

function locationOf(value: unknown): FunctionLocation | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!('scriptId' in value && 'lineNumber' in value)) return undefined;
  const { scriptId, lineNumber } = value;
  const column = 'columnNumber' in value ? value.columnNumber : 0;
  if (typeof scriptId !== 'string' || typeof lineNumber !== 'number') return undefined;
  return { scriptId, line: lineNumber, column: typeof column === 'number' ? column : 0 };
}
