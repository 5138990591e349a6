// Resolves each name in a source text to its variable. One walk over acorn's tree records scopes,
// declarations, references and the few constructs that matter for re-creating a function (`this`, `super`,
// `import.meta`, ...). Our own walk instead of a scope library, because it also records outer `this`, private
// names, and whether a binding can ever change. Long (over 400 lines), because it is one walk over every node
// type of the language.
// Not here: parsing (code.ts, scripts.ts), reading values (inspector.ts).

import type {
  AnonymousClassDeclaration,
  AnonymousFunctionDeclaration,
  AnyNode,
  ArrowFunctionExpression,
  CallExpression,
  ClassDeclaration,
  ClassExpression,
  FunctionDeclaration,
  FunctionExpression,
  Pattern,
  PropertyDefinition,
  VariableDeclaration,
} from 'acorn';

export type FunctionNode =
  | FunctionDeclaration
  | AnonymousFunctionDeclaration
  | FunctionExpression
  | ArrowFunctionExpression;
export type ClassNode = ClassDeclaration | AnonymousClassDeclaration | ClassExpression;

export type BindingKind = 'import' | 'const' | 'let' | 'var' | 'function' | 'class' | 'param';

/** A declared name. `writes` counts assignments that are not its initialisation. */
export interface Binding {
  readonly name: string;
  readonly kind: BindingKind;
  /** Offset of the declaring identifier: with the module's URL it identifies the variable. */
  readonly start: number;
  readonly scope: Scope;
  readonly inLoop: boolean;
  writes: number;
  initialisations: number;
  /** True: its initialisation makes its value, which differs for each scope of this kind. */
  readonly isFresh: boolean;
  /** For `import`: the specifier, and the export (`*`: the namespace). */
  readonly source: string | undefined;
  readonly imported: string | undefined;
  /** The import attribute `type`: 'json'; '' without one. */
  readonly importType: string;
}

export interface Scope {
  readonly node: AnyNode;
  readonly parent: Scope | undefined;
  /** True: `var` declarations land here. */
  readonly holdsVars: boolean;
  /** True: `this` inside is its own. */
  readonly ownsThis: boolean;
  readonly inLoop: boolean;
  /** The field of a class whose value this scope is for. */
  readonly field: PropertyDefinition | undefined;
  /** True: its code is strict: a class body, or below a `'use strict'`. Modules: see scripts.ts. */
  readonly isStrict: boolean;
  readonly bindings: Map<string, Binding>;
  readonly privateNames: Set<string>;
}

export interface Reference {
  readonly name: string;
  readonly start: number;
  readonly isWrite: boolean;
  /** True: it is called there, and not used as a value. */
  readonly isCall: boolean;
  readonly scope: Scope;
}

export type MarkKind =
  | 'this'
  | 'super'
  | 'new.target'
  | 'eval'
  | 'import.meta'
  | 'import()'
  | 'private';

/** A construct that is not a plain reference. `[start, end)` are offsets; `name` for `private`. */
export interface Mark {
  readonly kind: MarkKind;
  readonly start: number;
  readonly end: number;
  readonly scope: Scope;
  readonly name: string;
}

export interface ModuleExport {
  readonly name: string;
  /** The local binding, `undefined` for `export default <expression>` and re-exports. */
  readonly local: string | undefined;
  /** The exported node of `export default <expression>`. */
  readonly node: AnyNode | undefined;
}

/** `this.key = …`, or a helper that does so. `[start, end)` is the value; `scope` owns the `this`. */
export interface OwnAssignment {
  /** `undefined`: the key is computed. */
  readonly key: string | undefined;
  readonly start: number;
  readonly end: number;
  readonly scope: Scope;
}

export interface Analysis {
  readonly root: Scope;
  readonly scopes: readonly Scope[];
  readonly references: readonly Reference[];
  readonly marks: readonly Mark[];
  readonly functions: readonly (FunctionNode | ClassNode)[];
  readonly exports: readonly ModuleExport[];
  /** Functions and classes at the top: offset of the name to offset of the text. */
  readonly topLevel: ReadonlyMap<number, number>;
  readonly identifiers: ReadonlySet<string>;
  /** True: there is an import or export declaration. */
  readonly hasModuleSyntax: boolean;
  /** Specifiers that it imports, re-exports or requires by a literal. */
  readonly sources: ReadonlySet<string>;
  /** True: there is an `await` outside of functions. */
  readonly isAwaitingAtTop: boolean;
  /** True: a part of it has another meaning in strict code than in sloppy code. */
  readonly dependsOnMode: boolean;
  /** Private names that are assigned somewhere. */
  readonly writtenPrivates: ReadonlySet<string>;
  /** Values that code assigns to a property of its `this`, outer ones first. */
  readonly ownAssignments: readonly OwnAssignment[];
  /** Functions that are called where they are written, and those that such a function gets as arguments. */
  readonly calledAtOnce: ReadonlySet<AnyNode>;
}

/** Walks a tree once. The tree must come from acorn with locations as it makes them. */
export function analyse(tree: AnyNode): Analysis {
  const walk = new Walk(tree);
  walk.visit(tree);
  walk.countWrites();
  return walk;
}

/** The binding that `name` means when used in `scope`; `undefined`: a global. */
export function resolve(scope: Scope, name: string): Binding | undefined {
  for (let at: Scope | undefined = scope; at !== undefined; at = at.parent) {
    const found = at.bindings.get(name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** True: the variable holds one value from its initialisation on. */
export function isConstant(binding: Binding): boolean {
  if (binding.writes > 0) return false;
  if (binding.kind !== 'var') return true;
  return binding.initialisations === 1 && !binding.inLoop;
}

/** True: `scope` lies in `node` or is its own scope. */
/** True: the code of `scope` runs once, when its script does. */
export function runsOnce(scope: Scope, { calledAtOnce }: Analysis): boolean {
  for (let at = scope; at.parent !== undefined; at = at.parent) {
    if (at.inLoop || ((at.holdsVars || at.ownsThis) && !calledAtOnce.has(at.node))) return false;
  }
  return true;
}

export function isInside(scope: Scope, node: AnyNode): boolean {
  return scope.node.start >= node.start && scope.node.end <= node.end;
}

function isNode(value: unknown): value is AnyNode {
  return (
    typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
  );
}

export function isFunctionNode(node: AnyNode): node is FunctionNode {
  return /^(?:Function(?:Declaration|Expression)|ArrowFunctionExpression)$/.test(node.type);
}

export function childrenOf(node: AnyNode): AnyNode[] {
  const children: AnyNode[] = [];
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) children.push(...value.filter(isNode));
    else if (isNode(value)) children.push(value);
  }
  return children;
}

type ScopeTraits = Pick<Scope, 'holdsVars' | 'ownsThis' | 'inLoop' | 'field'>;

interface DeclareOptions {
  readonly source?: string;
  readonly imported?: string;
  readonly importType?: string;
  readonly isFresh?: boolean;
}

class Walk implements Analysis {
  readonly root: Scope;
  readonly scopes: Scope[] = [];
  readonly references: Reference[] = [];
  /** Offsets of names that are called. */
  readonly #called = new Set<number>();
  readonly marks: Mark[] = [];
  readonly functions: (FunctionNode | ClassNode)[] = [];
  readonly exports: ModuleExport[] = [];
  readonly topLevel = new Map<number, number>();
  readonly identifiers = new Set<string>();
  hasModuleSyntax = false;
  readonly sources = new Set<string>();
  isAwaitingAtTop = false;
  dependsOnMode = false;
  readonly writtenPrivates = new Set<string>();
  readonly ownAssignments: OwnAssignment[] = [];
  readonly calledAtOnce = new Set<AnyNode>();
  #scope: Scope;

  constructor(tree: AnyNode) {
    this.root = newScope(tree, undefined, {
      holdsVars: true,
      ownsThis: true,
      inLoop: false,
      field: undefined,
    });
    this.#scope = this.root;
    this.scopes.push(this.root);
  }

  countWrites(): void {
    for (const { isWrite, name, scope } of this.references) {
      if (!isWrite) continue;
      const binding = resolve(scope, name);
      if (binding !== undefined) binding.writes += 1;
    }
    // Sloppy functions may change parameters through `arguments`, and a direct eval any variable.
    for (const { name, scope } of this.references) {
      const own = name === 'arguments' ? resolve(scope, name)?.scope : undefined;
      if (own !== undefined && !own.isStrict) mayWriteAll(own);
    }
    for (const { kind, scope } of this.marks) {
      if (kind !== 'eval') continue;
      for (let at: Scope | undefined = scope; at !== undefined; at = at.parent) mayWriteAll(at);
    }
  }

  visit(node: AnyNode): void {
    if (/^(?:Import|Export)\w*Declaration$/.test(node.type)) this.hasModuleSyntax = true;
    this.dependsOnMode ||= dependsOnMode(node);
    switch (node.type) {
      case 'Identifier':
        this.#refer(node.name, node.start, false);
        return;
      case 'FunctionDeclaration':
        if (node.id !== null) {
          this.#declare(node.id.name, 'function', node.id.start, 1, { isFresh: true });
          this.#atTop(node.id.start, node);
        }
        this.#visitFunction(node, undefined);
        return;
      case 'FunctionExpression':
        this.#visitFunction(node, node.id?.name);
        return;
      case 'ArrowFunctionExpression':
        this.#visitFunction(node, undefined);
        return;
      case 'ClassDeclaration':
        if (node.id !== null) {
          this.#declare(node.id.name, 'class', node.id.start, 1, { isFresh: true });
          this.#atTop(node.id.start, node);
        }
        this.#visitClass(node);
        return;
      case 'ClassExpression':
        this.#visitClass(node);
        return;
      case 'StaticBlock':
        this.#within(node, { holdsVars: true, ownsThis: true, inLoop: false }, () =>
          this.#visitAll(node.body),
        );
        return;
      case 'BlockStatement':
      case 'SwitchStatement':
        this.#within(node, { inLoop: this.#scope.inLoop }, () => this.#visitChildren(node));
        return;
      case 'ForStatement':
      case 'ForInStatement':
      case 'ForOfStatement':
        this.#visitFor(node);
        return;
      case 'WhileStatement':
      case 'DoWhileStatement':
        this.#within(node, { inLoop: true }, () => this.#visitChildren(node));
        return;
      case 'CatchClause':
        this.#within(node, { inLoop: this.#scope.inLoop }, () => {
          if (node.param) this.#declarePattern(node.param, 'param');
          this.visit(node.body);
        });
        return;
      case 'VariableDeclaration':
        this.#visitVariables(node);
        return;
      case 'AssignmentExpression':
        if (node.left.type === 'MemberExpression') {
          const { object, property, computed } = node.left;
          const isNamed = !computed && property.type === 'Identifier';
          if (object.type === 'ThisExpression' && property.type !== 'PrivateIdentifier') {
            this.#own(isNamed ? property.name : undefined, node.right);
          }
        }
        this.#assign(node.left);
        this.visit(node.right);
        return;
      case 'UpdateExpression':
      case 'UnaryExpression': {
        const isChange = node.type === 'UpdateExpression' || node.operator === 'delete';
        if (isChange && node.argument.type === 'Identifier') {
          this.#refer(node.argument.name, node.argument.start, true);
        } else {
          if (isChange) this.#notePrivate(node.argument);
          this.visit(node.argument);
        }
        return;
      }
      case 'MemberExpression':
        this.visit(node.object);
        if (node.computed || node.property.type === 'PrivateIdentifier') this.visit(node.property);
        return;
      case 'Property':
        if (node.computed) this.visit(node.key);
        this.visit(node.value);
        return;
      case 'LabeledStatement':
        this.visit(node.body);
        return;
      case 'BreakStatement':
      case 'ContinueStatement':
        return;
      case 'CallExpression':
        if (node.callee.type === 'Identifier') this.#called.add(node.callee.start);
        if (node.callee.type === 'Identifier' && node.callee.name === 'eval') {
          this.#mark('eval', node);
        }
        if (node.arguments[0]?.type === 'ThisExpression' && node.arguments[2] !== undefined) {
          // Code that compilers write for fields: Object.defineProperty(this, 'name', …) and the like.
          const [, key, value] = node.arguments;
          this.#own(key?.type === 'Literal' ? String(key.value) : undefined, value);
        }
        if (node.callee.type === 'Identifier' && node.callee.name === 'require') {
          this.#from(node.arguments[0]);
        }
        this.#callAtOnce(node);
        this.#visitChildren(node);
        return;
      case 'AwaitExpression':
        this.#awaits();
        this.visit(node.argument);
        return;
      case 'ThisExpression':
        this.#mark('this', node);
        return;
      case 'Super':
        this.#mark('super', node);
        return;
      case 'MetaProperty':
        this.#mark(node.meta.name === 'import' ? 'import.meta' : 'new.target', node);
        return;
      case 'ImportExpression':
        this.#mark('import()', node);
        this.#visitChildren(node);
        return;
      case 'PrivateIdentifier':
        this.#mark('private', node, node.name);
        return;
      case 'ImportDeclaration':
        this.#visitImport(node);
        return;
      case 'ExportNamedDeclaration':
      case 'ExportDefaultDeclaration':
        this.#visitExport(node);
        return;
      case 'ExportAllDeclaration':
        this.#from(node.source);
        return;
      default:
        this.#visitChildren(node);
    }
  }

  #from(source: AnyNode | null | undefined): void {
    if (source?.type === 'Literal' && typeof source.value === 'string') {
      this.sources.add(source.value);
    }
  }

  #awaits(): void {
    for (let at: Scope | undefined = this.#scope; at !== undefined; at = at.parent) {
      if (/Function|StaticBlock/.test(at.node.type)) return;
    }
    this.isAwaitingAtTop = true;
  }

  #visitChildren(node: AnyNode): void {
    this.#visitAll(childrenOf(node));
  }

  #visitAll(nodes: readonly AnyNode[]): void {
    for (const node of nodes) this.visit(node);
  }

  #within(
    node: AnyNode,
    has: Partial<ScopeTraits> & { readonly inLoop: boolean },
    body: () => void,
  ): void {
    const outer = this.#scope;
    this.#scope = newScope(node, outer, {
      holdsVars: has.holdsVars ?? false,
      ownsThis: has.ownsThis ?? false,
      inLoop: has.inLoop,
      field: has.field,
    });
    this.scopes.push(this.#scope);
    body();
    this.#scope = outer;
  }

  /** Notes `(function () {})()`, `(() => {}).call(this)`, and the arguments of a UMD wrapper. */
  #callAtOnce({ callee, arguments: given }: CallExpression): void {
    const called = callee.type === 'MemberExpression' ? callee.object : callee;
    if (!/^(?:Arrow)?FunctionExpression$/.test(called.type)) return;
    for (const each of [called, ...given]) this.calledAtOnce.add(each);
  }

  #visitFunction(node: FunctionNode, ownName: string | undefined): void {
    this.functions.push(node);
    const isArrow = node.type === 'ArrowFunctionExpression';
    this.#within(node, { holdsVars: true, ownsThis: !isArrow, inLoop: false }, () => {
      if (ownName !== undefined) this.#declare(ownName, 'function', node.start);
      if (!isArrow) this.#declare('arguments', 'param', node.start);
      for (const parameter of node.params) this.#declarePattern(parameter, 'param');
      if (node.body.type === 'BlockStatement') this.#visitAll(node.body.body);
      else this.visit(node.body);
    });
  }

  #visitClass(node: ClassNode): void {
    this.functions.push(node);
    this.#within(node, { inLoop: false }, () => {
      if (node.id) this.#declare(node.id.name, 'class', node.id.start);
      if (node.superClass) this.visit(node.superClass);
      for (const member of node.body.body) {
        if (member.type !== 'StaticBlock' && member.key.type === 'PrivateIdentifier') {
          this.#scope.privateNames.add(member.key.name);
        }
      }
      for (const member of node.body.body) this.#visitMember(member);
    });
  }

  #visitMember(member: ClassNode['body']['body'][number]): void {
    if (member.type === 'StaticBlock') {
      this.visit(member);
      return;
    }
    if (member.computed) this.visit(member.key);
    const { value } = member;
    if (!value) return;
    if (member.type === 'MethodDefinition') this.visit(value);
    else {
      const traits = { holdsVars: true, ownsThis: true, inLoop: false, field: member };
      this.#within(value, traits, () => this.visit(value));
    }
  }

  #visitFor(
    node: Extract<AnyNode, { type: 'ForStatement' | 'ForInStatement' | 'ForOfStatement' }>,
  ) {
    if (node.type === 'ForOfStatement' && node.await) this.#awaits();
    this.#within(node, { inLoop: true }, () => {
      if (node.type === 'ForStatement') {
        const { init, test, update, body } = node;
        if (init?.type === 'VariableDeclaration') this.#visitVariables(init, init.kind === 'let');
        else if (init) this.visit(init);
        for (const part of [test, update, body]) if (part) this.visit(part);
        return;
      }
      if (node.left.type === 'VariableDeclaration') {
        const kind = kindOf(node.left);
        for (const { id } of node.left.declarations) this.#declarePattern(id, kind);
      } else this.#assign(node.left);
      this.visit(node.right);
      this.visit(node.body);
    });
  }

  /** `isCopied`: each turn of a loop gets a scope with the values of the one before. */
  #visitVariables(node: VariableDeclaration, isCopied = false): void {
    const kind = kindOf(node);
    for (const { id, init } of node.declarations) {
      const isFresh = !isCopied && !!init && makesObject.test(init.type);
      if (id.type === 'Identifier')
        this.#declare(id.name, kind, id.start, init ? 1 : 0, { isFresh });
      else this.#declarePattern(id, kind, init ? 1 : 0);
      if (init) {
        if (id.type === 'Identifier') this.#atTop(id.start, init);
        this.visit(init);
      }
    }
  }

  #declarePattern(pattern: Pattern, kind: BindingKind, initialisations = 1): void {
    switch (pattern.type) {
      case 'Identifier':
        this.#declare(pattern.name, kind, pattern.start, initialisations);
        return;
      case 'ObjectPattern':
        for (const property of pattern.properties) {
          if (property.type === 'RestElement') this.#declarePattern(property.argument, kind);
          else {
            if (property.computed) this.visit(property.key);
            this.#declarePattern(property.value, kind);
          }
        }
        return;
      case 'ArrayPattern':
        for (const element of pattern.elements) if (element) this.#declarePattern(element, kind);
        return;
      case 'RestElement':
        this.#declarePattern(pattern.argument, kind);
        return;
      case 'AssignmentPattern':
        this.#declarePattern(pattern.left, kind);
        this.visit(pattern.right);
        return;
      default:
        this.visit(pattern);
    }
  }

  #assign(pattern: Pattern): void {
    switch (pattern.type) {
      case 'Identifier':
        this.#refer(pattern.name, pattern.start, true);
        return;
      case 'ObjectPattern':
        for (const property of pattern.properties) {
          if (property.type === 'RestElement') this.#assign(property.argument);
          else {
            if (property.computed) this.visit(property.key);
            this.#assign(property.value);
          }
        }
        return;
      case 'ArrayPattern':
        for (const element of pattern.elements) if (element) this.#assign(element);
        return;
      case 'RestElement':
        this.#assign(pattern.argument);
        return;
      case 'AssignmentPattern':
        this.#assign(pattern.left);
        this.visit(pattern.right);
        return;
      default:
        this.#notePrivate(pattern);
        this.visit(pattern);
    }
  }

  #own(key: string | undefined, { start, end }: AnyNode): void {
    let scope = this.#scope;
    while (!scope.ownsThis && scope.parent !== undefined) scope = scope.parent;
    this.ownAssignments.push({ key, start, end, scope });
  }

  #notePrivate(target: AnyNode): void {
    if (target.type !== 'MemberExpression' || target.property.type !== 'PrivateIdentifier') return;
    this.writtenPrivates.add(target.property.name);
  }

  #visitImport(node: Extract<AnyNode, { type: 'ImportDeclaration' }>): void {
    const source = String(node.source.value);
    this.#from(node.source);
    const type = node.attributes.find(({ key }) => nameOf(key) === 'type')?.value.value;
    const importType = typeof type === 'string' ? type : '';
    for (const specifier of node.specifiers) {
      const { name, start } = specifier.local;
      const imported =
        specifier.type === 'ImportDefaultSpecifier'
          ? 'default'
          : specifier.type === 'ImportNamespaceSpecifier'
            ? '*'
            : nameOf(specifier.imported);
      this.#declare(name, 'import', start, 1, { source, imported, importType });
    }
  }

  #visitExport(
    node: Extract<AnyNode, { type: 'ExportNamedDeclaration' | 'ExportDefaultDeclaration' }>,
  ): void {
    if (node.type === 'ExportDefaultDeclaration') {
      const { declaration } = node;
      const isNamed =
        (declaration.type === 'FunctionDeclaration' || declaration.type === 'ClassDeclaration') &&
        declaration.id !== null;
      const local = isNamed
        ? declaration.id?.name
        : declaration.type === 'Identifier'
          ? declaration.name
          : undefined;
      this.exports.push({ name: 'default', local, node: declaration });
      this.visit(declaration);
      return;
    }
    if (node.declaration) {
      const before = new Set(this.#scope.bindings.keys());
      this.visit(node.declaration);
      for (const local of this.#scope.bindings.keys()) {
        if (!before.has(local)) this.exports.push({ name: local, local, node: undefined });
      }
      return;
    }
    this.#from(node.source);
    if (node.source) {
      for (const { exported } of node.specifiers) {
        this.exports.push({ name: nameOf(exported), local: undefined, node: undefined });
      }
      return;
    }
    for (const { local, exported } of node.specifiers) {
      this.exports.push({ name: nameOf(exported), local: nameOf(local), node: undefined });
    }
  }

  #declare(
    name: string,
    kind: BindingKind,
    start: number,
    initialisations = 1,
    from: DeclareOptions = {},
  ): void {
    this.identifiers.add(name);
    let scope = this.#scope;
    if (kind === 'var') while (!scope.holdsVars && scope.parent) scope = scope.parent;
    const inLoop = kind === 'var' && this.#scope.inLoop;
    const known = scope.bindings.get(name);
    if (known !== undefined && (kind === 'var' || kind === 'function')) {
      // Declared again: the same variable with one more value.
      known.initialisations += initialisations;
      if (kind === 'function' || inLoop) known.writes += 1;
      return;
    }
    scope.bindings.set(name, {
      name,
      kind,
      start,
      scope,
      inLoop,
      writes: 0,
      initialisations,
      source: from.source,
      imported: from.imported,
      importType: from.importType ?? '',
      isFresh: from.isFresh ?? false,
    });
  }

  #atTop(nameStart: number, node: AnyNode): void {
    if (this.#scope === this.root) this.topLevel.set(nameStart, node.start);
  }

  #refer(name: string, start: number, isWrite: boolean): void {
    this.identifiers.add(name);
    const isCall = this.#called.has(start);
    this.references.push({ name, start, isWrite, isCall, scope: this.#scope });
  }

  #mark(kind: MarkKind, node: AnyNode, name = ''): void {
    this.marks.push({ kind, start: node.start, end: node.end, scope: this.#scope, name });
  }
}

/** Counts a write to each variable of a scope that code may write without naming it. */
function mayWriteAll({ bindings }: Scope): void {
  for (const binding of bindings.values()) {
    if (binding.kind !== 'const' && binding.kind !== 'import') binding.writes += 1;
  }
}

/** Names that strict code reserves. */
const reservedWords = new Set(
  'let static yield await implements interface package private protected public'.split(' '),
);

/** True: `node` by itself has another meaning in strict code, or is an error in one of the two. */
function dependsOnMode(node: AnyNode): boolean {
  switch (node.type) {
    case 'ThisExpression':
    case 'WithStatement':
    case 'FunctionDeclaration': // in a block it is visible outside in sloppy code only
      return true;
    case 'Identifier':
      return node.name === 'arguments' || node.name === 'eval' || reservedWords.has(node.name);
    case 'AssignmentExpression':
      return node.left.type !== 'Identifier'; // may be a frozen property
    case 'UpdateExpression':
      return node.argument.type !== 'Identifier';
    case 'UnaryExpression':
      return node.operator === 'delete';
    case 'FunctionExpression':
      return node.id !== null && node.id !== undefined; // its own name may be assigned, without effect
    case 'Literal':
      return isOctal(node.raw ?? '');
    default:
      return false;
  }
}

/** `017` and `'\\17'`, which only sloppy code may have. */
function isOctal(raw: string): boolean {
  return /^0\d/.test(raw) || (/^["']/.test(raw) && /\\\d/.test(raw));
}

/** True: a directive in `node` itself makes its code strict. */
function declaresStrict(node: AnyNode): boolean {
  switch (node.type) {
    case 'ClassDeclaration':
    case 'ClassExpression':
      return true;
    case 'Program':
      return hasDirective(node.body);
    case 'FunctionDeclaration':
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      return node.body.type === 'BlockStatement' && hasDirective(node.body.body);
    default:
      return false;
  }
}

function hasDirective(body: readonly AnyNode[]): boolean {
  for (const statement of body) {
    if (statement.type !== 'ExpressionStatement' || !('directive' in statement)) return false;
    if (statement.directive === 'use strict') return true;
    if (statement.directive === undefined) return false;
  }
  return false;
}

/** A `using` declaration cannot be assigned either. */
function kindOf({ kind }: VariableDeclaration): 'var' | 'let' | 'const' {
  return kind === 'var' || kind === 'let' ? kind : 'const';
}

const makesObject =
  /^(?:FunctionExpression|ArrowFunctionExpression|ClassExpression|ObjectExpression|ArrayExpression)$/;

function nameOf(node: AnyNode): string {
  if (node.type === 'Identifier') return node.name;
  return node.type === 'Literal' ? String(node.value) : '';
}

function newScope(node: AnyNode, parent: Scope | undefined, has: ScopeTraits): Scope {
  const isStrict = parent?.isStrict === true || declaresStrict(node);
  return { node, parent, ...has, isStrict, bindings: new Map(), privateNames: new Set() };
}
