// Classes of errors as packages have them, and errors that their makers changed by hand.

import util from 'node:util';

interface Issue {
  readonly code: string;
  readonly path: readonly (string | number)[];
}

/** Like zod 3: the message is computed, and functions lie on the error. */
class ZodError extends Error {
  issues: readonly Issue[] = [];
  addIssue = (issue: Issue): void => {
    this.issues = [...this.issues, issue];
  };
  constructor(issues: readonly Issue[]) {
    super();
    Object.setPrototypeOf(this, new.target.prototype);
    this.name = 'ZodError';
    this.issues = issues;
  }
  get errors(): readonly Issue[] {
    return this.issues;
  }
  override get message(): string {
    return JSON.stringify(this.issues, null, 2);
  }
  override toString(): string {
    return this.message;
  }
}

/** Like axios. */
class AxiosError extends Error {
  readonly isAxiosError = true;
  readonly status: number;
  readonly code: string;
  readonly config: unknown;
  readonly response: unknown;
  constructor(message: string, code: string, config: unknown, response: { status: number }) {
    super(message);
    this.name = 'AxiosError';
    this.code = code;
    this.config = config;
    this.response = response;
    this.status = response.status;
  }
  toJSON(): object {
    return { message: this.message, name: this.name, code: this.code, status: this.status };
  }
}

type Old = (this: Record<string, unknown>, ...args: never[]) => unknown;

/** Inheritance by `util.inherits`. */
function inherit<F extends Old>(fn: F, above: Old | ErrorConstructor): F {
  Object.setPrototypeOf(fn.prototype, above.prototype);
  Object.setPrototypeOf(fn, above);
  return fn;
}

/** Like http-errors: the instance is an error whose prototype was changed. */
const HttpError = inherit(function HttpError(): never {
  throw new TypeError('cannot construct abstract class');
}, Error);
function clientError(name: string, statusCode: number): Old {
  const made: Old = inherit(function ClientError(message?: string): unknown {
    const error = new Error(message ?? 'Not Found');
    Object.setPrototypeOf(error, made.prototype);
    Object.defineProperty(error, 'message', { enumerable: true, value: message ?? 'Not Found' });
    return error;
  }, HttpError);
  Object.defineProperty(made, 'name', { value: name });
  Object.assign(made.prototype, { name, statusCode, expose: true });
  return made;
}
const NotFoundError = clientError('NotFoundError', 404);

/** Like verror. */
const VError = inherit(function VError(cause: Error, message: string): void {
  this['jse_cause'] = cause;
  this['message'] = `${message}: ${cause.message}`;
  Error.captureStackTrace(this, VError);
}, Error);
Object.assign(VError.prototype, {
  name: 'VError',
  cause(this: Record<string, unknown>) {
    return this['jse_cause'];
  },
});

class WithPrivate extends Error {
  static #made = 0;
  readonly #secret: number = 5;
  readonly shown: number;
  constructor(message: string) {
    super(message);
    WithPrivate.#made += 1;
    this.shown = this.#secret;
  }
}

class WithGetters extends TypeError {
  readonly data: number;
  constructor(data: number) {
    super('base');
    this.data = data;
  }
  override get name(): string {
    return `WithGetters${this.data}`;
  }
  override get message(): string {
    return `computed ${this.data}`;
  }
  get [Symbol.toStringTag](): string {
    return 'Tagged';
  }
}

class NeedsOptions extends Error {
  readonly kind: string;
  constructor(options: { readonly text: string; readonly kind: string }) {
    super(options.text);
    this.kind = options.kind;
  }
}

class WithFields extends Error {
  override name = 'WithFields';
  override message = 'field';
  code = 'E_FIELDS';
}

class OfPrototype extends Error {}
Object.assign(OfPrototype.prototype, { name: 'OfPrototype', code: 'E_PROTOTYPE' });

class Inspected extends Error {}
Object.defineProperty(Inspected.prototype, util.inspect.custom, {
  value(this: Error): string {
    return `Inspected: ${this.message}`;
  },
});

class WithMethods extends Error {
  arrow = (): string => this.message;
  bound = this.tell.bind(this);
  tell(): string {
    return this.message;
  }
}

class Abstract extends Error {
  constructor(message: string) {
    if (new.target === Abstract) throw new TypeError('abstract');
    super(message);
  }
}
class Concrete extends Abstract {}

class Tagged extends Error {
  readonly isTagged = true;
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && 'isTagged' in value;
  }
}

class Several extends AggregateError {
  readonly extra = 1;
}

class OfTheWeb extends DOMException {
  readonly extra = 1;
}

class WithValues extends Error {
  readonly map = new Map([[1, new Set(['a'])]]);
  readonly date = new Date(5);
  readonly pattern = /a/g;
  readonly bytes = Buffer.from('abc');
  readonly values = [undefined, null, Number.NaN, 5n, -0];
}

const thrower =
  (make: () => unknown): (() => never) =>
  () => {
    throw make();
  };

export const packageErrors: Readonly<Record<string, () => never>> = {
  zod: thrower(() => new ZodError([{ code: 'invalid_type', path: ['a', 0] }])),
  axios: thrower(
    () => new AxiosError('failed', 'ERR_BAD', { headers: [(x: number) => x] }, { status: 404 }),
  ),
  'http-errors': thrower(() => Reflect.apply(NotFoundError, {}, ['gone'])),
  verror: thrower(() => Reflect.construct(VError, [new TypeError('inner'), 'outer'])),
  'private members': thrower(() => new WithPrivate('p')),
  getters: thrower(() => new WithGetters(5)),
  'a constructor that needs arguments': thrower(() => new NeedsOptions({ text: 'a', kind: 'b' })),
  fields: thrower(() => new WithFields('x')),
  'properties of the prototype': thrower(() => new OfPrototype('m')),
  'util.inspect.custom': thrower(() => new Inspected('m')),
  methods: thrower(() => new WithMethods('m')),
  'an abstract class': thrower(() => new Concrete('m')),
  'Symbol.hasInstance': thrower(() => new Tagged('m')),
  'a class of several': thrower(() => new Several([new WithFields(), new TypeError('b'), 5], 'm')),
  'a class of DOMException': thrower(() => new OfTheWeb('dom', 'DataError')),
  values: thrower(() => new WithValues('m')),
  frozen: thrower(() => Object.freeze(new WithFields())),
  sealed: thrower(() => Object.seal(new OfPrototype('s'))),
  'a cause that is null': thrower(() => new OfPrototype('m', { cause: null })),
  'errors in errors': thrower(() =>
    Object.assign(new WithFields(), { errors: [new OfPrototype('a'), { message: 'b' }] }),
  ),
  'one error twice': thrower(() => {
    const inner = new OfPrototype('inner');
    return Object.assign(new Error('x'), { a: inner, b: [inner] });
  }),
  'a property that is read only': thrower(() =>
    Object.defineProperty(new Error('x'), 'code', { value: 'E', enumerable: true }),
  ),
  'an own getter': thrower(() =>
    Object.defineProperty(new Error('x'), 'lazy', { get: () => 5, enumerable: true }),
  ),
  'a constructor that is text': thrower(() =>
    Object.assign(new Error('x'), { constructor: 'text' }),
  ),
  'a message of 100,000 characters': thrower(() => new Error('x'.repeat(100_000))),
};
