// Code that loading a module evaluates: every statement, evaluated parts of classes, and the bodies of
// functions that its text shows to be called meanwhile. Lists the modules that it loads, and whether it acts:
// calls something for its effect, awaits, or starts a task or a server.
// Not here: which of those modules are the user's (own-modules.ts), and what follows (program.ts).

import type { AnyNode, CallExpression, NewExpression, TaggedTemplateExpression } from 'acorn';
import { type Analysis, type ClassNode, childrenOf, isFunctionNode } from './scope.js';

export interface AtLoad {
  /** True: loading it again does more than define its exports. */
  readonly acts: boolean;
  /** Specifiers of the modules loaded with it: imports, re-exports, `require` and `import()` of a literal. */
  readonly loads: ReadonlySet<string>;
}

const cache = new WeakMap<Analysis, AtLoad>();

/** `mayElide`: a compiler omits imports that only types use. */
export function atLoad(analysis: Analysis, mayElide: boolean): AtLoad {
  const found = cache.get(analysis);
  if (found !== undefined) return found;
  const made = new Load(analysis, mayElide);
  cache.set(analysis, made);
  return made;
}

/** Calls that only make exports, or load further modules. */
const quietCalls = /^(?:require|Object\.\w+|Reflect\.\w+|__\w+|_\w+|tslib(?:_\d+)?\.\w+)$/;
/** Calls whose result a program keeps, and that a worker must not repeat. */
const startingCalls =
  /(?:^|\.)(?:run|pmap(?:\.\w+)?|listen|serve|deploy)(?:\.(?:call|apply|bind))?$/;
/** Calls that call the functions among their arguments, now or soon. */
const callingCalls =
  /\.(?:map|flatMap|forEach|filter|find|findLast|findIndex|findLastIndex|some|every|reduce|reduceRight|from|fromAsync|then|catch|finally)$|^(?:setTimeout|setInterval|setImmediate|queueMicrotask|process\.nextTick)$/;
/** Calls that fill a collection. */
const fillingCalls = /^([\w$]+)\.(?:set|add|push|unshift|append)$/;

class Load implements AtLoad {
  acts: boolean;
  readonly loads = new Set<string>();
  readonly #analysis: Analysis;
  readonly #mayElide: boolean;
  /** The function, class or value of each name at the top. */
  readonly #declared = new Map<string, AnyNode>();
  /** Names that stand for those of other modules: `run as go`, `{ run: go }`. */
  readonly #aliases = new Map<string, string>();
  readonly #entered = new Set<AnyNode>();

  constructor(analysis: Analysis, mayElide: boolean) {
    this.#analysis = analysis;
    this.#mayElide = mayElide;
    this.acts = analysis.isAwaitingAtTop;
    const { node } = analysis.root;
    if (node.type !== 'Program') return;
    for (const statement of node.body) this.#declare(statement);
    this.#visitAll(node.body);
  }

  #declare(statement: AnyNode): void {
    switch (statement.type) {
      case 'ExportNamedDeclaration':
      case 'ExportDefaultDeclaration':
        if (statement.declaration) this.#declare(statement.declaration);
        return;
      case 'FunctionDeclaration':
      case 'ClassDeclaration':
        if (statement.id) this.#declared.set(statement.id.name, statement);
        return;
      case 'ImportDeclaration':
        for (const each of statement.specifiers) {
          const { local } = each;
          if (each.type === 'ImportSpecifier') this.#alias(each.imported, local);
        }
        return;
      case 'VariableDeclaration':
        for (const { id, init } of statement.declarations) {
          if (id.type === 'Identifier' && init) this.#declared.set(id.name, init);
          if (id.type !== 'ObjectPattern') continue;
          for (const each of id.properties) {
            if (each.type === 'Property' && !each.computed) this.#alias(each.key, each.value);
          }
        }
        return;
    }
  }

  #alias(name: AnyNode, local: AnyNode): void {
    if (local.type === 'Identifier' && name.type === 'Identifier' && name.name !== local.name) {
      this.#aliases.set(local.name, name.name);
    }
  }

  #visitAll(nodes: readonly (AnyNode | null)[]): void {
    for (const node of nodes) if (node) this.#visit(node, false);
  }

  /** `forEffect`: the value of an expression is discarded. */
  #visit(node: AnyNode, forEffect: boolean): void {
    switch (node.type) {
      case 'FunctionDeclaration':
      case 'FunctionExpression':
      case 'ArrowFunctionExpression':
        return; // see `#enter`
      case 'ClassDeclaration':
      case 'ClassExpression':
        this.#visitClass(node);
        return;
      case 'ImportDeclaration':
        if (!this.#isElided(node)) this.#load(node.source);
        return;
      case 'ExportAllDeclaration':
        this.#load(node.source);
        return;
      case 'ExportNamedDeclaration':
        this.#load(node.source);
        if (node.declaration) this.#visit(node.declaration, false);
        return;
      case 'ExpressionStatement':
        this.#visit(node.expression, true);
        return;
      case 'IfStatement':
      case 'ConditionalExpression':
        if (isMainTest(node.test)) return;
        this.#visit(node.test, false);
        this.#visit(node.consequent, forEffect);
        if (node.alternate) this.#visit(node.alternate, forEffect);
        return;
      case 'LogicalExpression':
        if (isMainTest(node.left)) return;
        this.#visit(node.left, false);
        this.#visit(node.right, forEffect);
        return;
      case 'SequenceExpression':
        for (const each of node.expressions) {
          this.#visit(each, forEffect || each !== node.expressions.at(-1));
        }
        return;
      case 'UnaryExpression':
      case 'AwaitExpression':
        this.#visit(node.argument, forEffect);
        return;
      case 'ChainExpression':
        this.#visit(node.expression, forEffect);
        return;
      case 'ImportExpression':
        this.acts ||= forEffect;
        this.#load(node.source);
        this.#visit(node.source, false);
        return;
      case 'CallExpression':
        this.#call(node, forEffect);
        return;
      case 'NewExpression':
        this.#construct(node, forEffect);
        return;
      case 'TaggedTemplateExpression':
        this.#tag(node, forEffect);
        return;
      default:
        this.#visitAll(childrenOf(node));
    }
  }

  #visitClass({ superClass, body }: ClassNode): void {
    this.#visitAll([superClass ?? null]);
    for (const member of body.body) {
      if (member.type === 'StaticBlock') this.#visitAll(member.body);
      else {
        if (member.computed) this.#visit(member.key, false);
        if (member.static && member.value) this.#visit(member.value, false);
      }
    }
  }

  #isElided({ specifiers }: Extract<AnyNode, { type: 'ImportDeclaration' }>): boolean {
    if (!this.#mayElide || specifiers.length === 0) return false;
    const names = new Set<string>(specifiers.map(({ local }) => local.name));
    const { exports, references } = this.#analysis;
    return !(
      references.some(({ name }) => names.has(name)) ||
      exports.some(({ local }) => local !== undefined && names.has(local))
    );
  }

  #load(source: AnyNode | null | undefined): void {
    if (source?.type === 'Literal' && typeof source.value === 'string')
      this.loads.add(source.value);
  }

  #call(node: CallExpression, forEffect: boolean): void {
    const { callee, arguments: given } = node;
    const name = this.#nameOf(callee);
    if (name === 'require') this.#load(given[0]);
    this.#judge(name, forEffect && functionCalled(node) === undefined);
    this.#visit(callee, false);
    this.#visitAll(given);
    this.#enterCalled(callee, forEffect);
    for (const each of [functionCalled(node), ...given]) {
      if (each && this.#analysis.calledAtOnce.has(each)) this.#enter(each, forEffect);
    }
    if (callingCalls.test(name)) this.#enterGiven(node);
    if (callee.type === 'CallExpression') this.#enterGiven(callee);
  }

  #construct(node: NewExpression, forEffect: boolean): void {
    this.acts ||= forEffect;
    this.#visit(node.callee, false);
    this.#visitAll(node.arguments);
    const name = this.#nameOf(node.callee);
    if (name === 'Promise') this.#enterGiven(node);
    const made = node.callee.type === 'ClassExpression' ? node.callee : this.#declared.get(name);
    if (made) this.#enter(made, false);
  }

  #tag({ tag, quasi }: TaggedTemplateExpression, forEffect: boolean): void {
    this.#judge(this.#nameOf(tag), forEffect);
    this.#visit(tag, false);
    this.#visit(quasi, false);
    this.#enterCalled(tag, forEffect);
  }

  #judge(name: string, forEffect: boolean): void {
    const [, collection = ''] = fillingCalls.exec(name) ?? [];
    const isQuiet = quietCalls.test(name) || isCollection(this.#declared.get(collection));
    this.acts ||= startingCalls.test(name) || (forEffect && !isQuiet);
  }

  /** Enters the function that `callee` names at the top of the module. */
  #enterCalled(callee: AnyNode, forEffect: boolean): void {
    if (callee.type !== 'Identifier') return;
    const called = this.#declared.get(callee.name);
    if (called?.type === 'CallExpression') {
      this.acts ||= /(?:^|\.)task$/.test(this.#nameOf(called.callee));
      this.#enterGiven(called); // `const start = once(() => run(…))`
    } else if (called !== undefined) this.#enter(called, forEffect);
  }

  #enterGiven({ arguments: given }: CallExpression | NewExpression): void {
    for (const each of given) this.#enter(each, false);
  }

  /** Visits the code that a call of a function, or making an instance of a class, evaluates. */
  #enter(node: AnyNode, forEffect: boolean): void {
    if (this.#entered.has(node)) return;
    if (isFunctionNode(node)) {
      this.#entered.add(node);
      this.#visitAll(node.params);
      this.#visit(node.body, forEffect);
    } else if (node.type === 'ClassDeclaration' || node.type === 'ClassExpression') {
      this.#entered.add(node);
      for (const member of node.body.body) {
        if (member.type === 'StaticBlock' || member.static || !member.value) continue;
        if (member.type === 'PropertyDefinition') this.#visit(member.value, false);
        else if (member.kind === 'constructor') this.#enter(member.value, false);
      }
    } else if (node.type === 'Identifier') {
      const named = this.#declared.get(node.name);
      if (named && isFunctionNode(named)) this.#enter(named, forEffect);
      else this.#judge(this.#nameOf(node), false); // `list.map(run)`
    }
  }

  /** The name of the called function, as the exporting module has it. */
  #nameOf(node: AnyNode): string {
    if (node.type === 'Identifier') return this.#aliases.get(node.name) ?? node.name;
    if (node.type === 'ChainExpression') return this.#nameOf(node.expression);
    if (node.type !== 'MemberExpression' || node.property.type === 'PrivateIdentifier') return '';
    const { object, property, computed } = node;
    const key = property.type === 'Literal' ? String(property.value) : '';
    const name = property.type === 'Identifier' && !computed ? property.name : key;
    return name === '' ? '' : `${this.#nameOf(object)}.${name}`;
  }
}

/** The function expression that a call calls: `(() => {})()`, `(function () {}).call(this)`. */
function functionCalled({ callee }: CallExpression): AnyNode | undefined {
  const called = callee.type === 'MemberExpression' ? callee.object : callee;
  return isFunctionNode(called) ? called : undefined;
}

/** True: the module made the collection itself, so filling it has no effect on other modules. */
function isCollection(node: AnyNode | undefined): boolean {
  if (node?.type === 'ArrayExpression') return true;
  if (node?.type !== 'NewExpression' || node.callee.type !== 'Identifier') return false;
  return /^(?:Weak)?(?:Map|Set)$|^Array$/.test(node.callee.name);
}

/**
 * True: a test for the main module: `require.main === module`, `import.meta.main`, `process.argv[1] ===
 * import.meta.filename`.
 */
function isMainTest(node: AnyNode): boolean {
  switch (node.type) {
    case 'MetaProperty':
      return true;
    case 'BinaryExpression':
      return isMainTest(node.left) || isMainTest(node.right);
    case 'MemberExpression': {
      const { object, property } = node;
      const isMain = object.type === 'Identifier' && object.name === 'require';
      if (isMain && property.type === 'Identifier' && property.name === 'main') return true;
      return isMainTest(object);
    }
    case 'CallExpression':
      return node.arguments.some(isMainTest);
    default:
      return false;
  }
}
