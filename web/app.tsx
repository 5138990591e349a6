// Frame of the page: the opened program or the list, and a notice when the data is old.

import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ViewEvent } from '../src/observe/dashboard/protocol.js';
import { shortTitle } from '../src/observe/format.js';
import { Connection, type ConnectionState } from './connection.js';
import { History, type PlacedSlice } from './history.js';
import { Program } from './program.js';
import { ProgramList } from './program-list.js';

export type OnSlice = (key: string, slice: PlacedSlice) => void;

interface Shown {
  readonly view: ViewEvent | undefined;
  readonly state: ConnectionState;
  readonly silentMs: number;
  readonly problem: string;
}

const nothing: Shown = { view: undefined, state: 'connecting', silentMs: 0, problem: '' };

function openedPid(): number | undefined {
  const pid = Number(location.hash.slice(1));
  return Number.isInteger(pid) && pid > 0 ? pid : undefined;
}

export function App() {
  const history = useRef(new History());
  const onSlice = useRef<OnSlice>(() => {});
  const heading = useRef<HTMLHeadingElement>(null);
  const { shown, pid } = useConnection(history, onSlice, heading);
  const { view } = shown;
  const line = view?.programs.find((program) => program.pid === pid);
  const title = line && `${shortTitle(line.title)} ${line.pid}`;
  useEffect(() => {
    document.title = title === undefined ? 'manycore' : `${title} - manycore`;
  }, [title]);
  return (
    <>
      <header>
        <a class="home" href="./#">
          manycore
        </a>
        <Status {...shown} />
      </header>
      <main>
        <h1 tabIndex={-1} ref={heading}>
          {pid === undefined ? 'Programs' : (title ?? `Program ${pid}`)}
        </h1>
        <Content view={view} pid={pid} history={history.current} onSlice={onSlice} />
      </main>
    </>
  );
}

/** Shows the last received view, and the opened program; each opened program has its own history. */
function useConnection(
  history: RefObject<History>,
  onSlice: RefObject<OnSlice>,
  heading: RefObject<HTMLElement | null>,
): { shown: Shown; pid: number | undefined } {
  const [shown, setShown] = useState(nothing);
  const [pid, setPid] = useState(openedPid);
  useEffect(() => {
    const connection = new Connection({
      onView: (view) => {
        if (view.opened !== undefined) history.current.noteView(view.opened, new Date());
        setShown((last) => ({ ...last, view, problem: '' }));
      },
      onTasks: (tasks) => {
        const { key, placed } = history.current.noteTasks(tasks, performance.now());
        onSlice.current(key, placed);
      },
      onProblem: (problem) => setShown((last) => ({ ...last, problem })),
      // A problem reported by a server that is silent now is outdated, too.
      onState: (state, silentMs) =>
        setShown((last) => {
          const problem = state === 'live' ? last.problem : '';
          return { ...last, state, silentMs, problem };
        }),
    });
    connection.open(openedPid());
    const onHash = () => {
      history.current = new History();
      setPid(openedPid());
      connection.open(openedPid());
      heading.current?.focus();
    };
    addEventListener('hashchange', onHash);
    return () => removeEventListener('hashchange', onHash);
  }, [history, onSlice, heading]);
  return { shown, pid };
}

interface ContentProps {
  readonly view: ViewEvent | undefined;
  readonly pid: number | undefined;
  readonly history: History;
  readonly onSlice: RefObject<OnSlice>;
}

function Content({ view, pid, history, onSlice }: ContentProps) {
  if (pid === undefined) return <ProgramList programs={view?.programs} />;
  if (view?.opened?.pid === pid) {
    return <Program program={view.opened} history={history} onSlice={onSlice} />;
  }
  const mayCome = view === undefined || view.programs.some((program) => program.pid === pid);
  return <p>{mayCome ? 'Searching for it ...' : `Program ${pid} has ended, or does not exist.`}</p>;
}

function Status({ state, silentMs, problem }: Shown) {
  return (
    <p class={`status ${problem === '' ? state : 'refused'}`} role="status">
      {problem === '' ? statusText(state, silentMs) : problem}
    </p>
  );
}

function statusText(state: ConnectionState, silentMs: number): string {
  const seconds = Math.round(silentMs / 1000);
  switch (state) {
    case 'connecting':
      return 'connecting';
    case 'live':
      return 'live';
    case 'stale':
      return `stale: nothing received for ${seconds} s, trying again`;
    case 'refused':
      return 'refused: open the address that manycore dashboard has printed';
  }
}
