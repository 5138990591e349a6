import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Lifecycle } from '../../src/lib/index.js';

type Phase = 'new' | 'running' | 'over';

function makeLife(): Lifecycle<Phase> {
  return new Lifecycle<Phase>('worker 3', 'new', {
    new: ['running', 'over'],
    running: ['over'],
    over: [],
  });
}

test('legal steps change the state', () => {
  const life = makeLife();
  assert.equal(life.state, 'new');
  life.transition('running');
  assert.ok(life.is('running', 'over'));
  assert.equal(life.tryTransition('over'), true);
  assert.equal(life.state, 'over');
});

test('an illegal step throws INTERNAL_STATE that names thing and step, and changes nothing', () => {
  const life = makeLife();
  life.transition('over');
  assert.throws(() => life.transition('running'), {
    code: 'INTERNAL_STATE',
    message: /worker 3 cannot go from "over" to "running"/,
  });
  assert.equal(life.tryTransition('new'), false);
  assert.equal(life.state, 'over');
});
