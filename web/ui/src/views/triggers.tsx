import { useEffect, useState, type ReactNode } from 'react'
import { act, enc } from '../api'
import { usePoll, useWho } from '../data'
import { num } from '../format'
import { useActing } from '../parts/acting'
import { Empty, JobLink, Problem, Time, type Outcome } from '../parts/basics'
import type { Trigger } from '../types'
import { JobName, useNames } from '../parts/names'

/** The times at which a trigger fires next, when somebody asks. */
function NextTimes({ id, known }: { id: string; known: string[] }): ReactNode {
  const [open, setOpen] = useState(false)
  const one = usePoll<Trigger>(open ? `v1/triggers/${enc(id)}?next=5` : null, 10_000)
  if (known.length === 0) return null
  return (
    <details onToggle={e => setOpen(e.currentTarget.open)}><summary>Next times</summary>
      <Problem text={one.error} />
      <ol className="times">{(one.data?.next ?? known).map(at => <li key={at}><Time at={at} ahead /> <span className="faint">{new Date(at).toLocaleString()}</span></li>)}</ol>
    </details>
  )
}

export function TriggersView(): ReactNode {
  const list = usePoll<Trigger[]>('v1/triggers', 2000)
  const { mayAct } = useWho()
  const { ask, done } = useActing()
  const { again } = list
  useEffect(() => { if (done) again() }, [done, again])
  const named = useNames((list.data ?? []).flatMap(t => t.last_tree ?? []))
  const name = (t: Trigger): string => t.aliases?.[0] ?? t.id
  const post = (t: Trigger, verb: string, said: string, back?: string) => async (): Promise<Outcome> => {
    await act('POST', `v1/triggers/${enc(t.id)}/${verb}`)
    return { said, ...(back ? { undo: () => act('POST', `v1/triggers/${enc(t.id)}/${back}`) } : {}) }
  }
  const fire = (t: Trigger): void => ask({ title: `Fire ${name(t)} now?`, text: 'It launches its tree once more, besides the times of its schedule.', verb: 'Fire now', run: post(t, 'fire', `${name(t)} fires`) })
  const pause = (t: Trigger): void => ask(t.paused
    ? { title: `Resume ${name(t)}?`, text: 'It fires again from its next time on.', verb: 'Resume', run: post(t, 'resume', `${name(t)} is resumed`, 'pause') }
    : { title: `Pause ${name(t)}?`, text: 'What would fire is dropped until it is resumed. Trees that it launched go on.', verb: 'Pause', run: post(t, 'pause', `${name(t)} is paused`, 'resume') })
  return (
    <div className="view">
      <h1>Triggers</h1>
      <Problem text={list.error} />
      {list.data?.length === 0 && <Empty title="No triggers yet."><p>Make one: <code>weir trigger add '30 9 * * MON-FRI' --type report</code>, or <code>POST v1/triggers</code></p></Empty>}
      <div className="cards">
        {list.data?.map(t => (
          <article key={t.id} className="card" aria-label={`Trigger ${name(t)}`}>
            <div className="head"><h2><JobLink id={t.id} name={name(t)} /></h2><span className={`status ${t.paused ? 's-suspended' : 's-running'}`}>{t.paused ? 'ǁ paused' : `● ${t.kind}`}</span></div>
            {t.understood && <p><bdi>{t.understood}</bdi></p>}
            {t.reason && <p className="error"><bdi>{t.reason}</bdi></p>}
            <dl className="facts">
              <div><dt>Next</dt><dd>{t.next?.length && !t.paused ? <Time at={t.next[0]} ahead /> : '–'}</dd></div><div><dt>Last</dt><dd><Time at={t.last} /></dd></div>
              <div><dt>Fired</dt><dd>{num(t.firings)}</dd></div><div><dt>Launched</dt><dd>{num(t.launches)}</dd></div>
              <div><dt>Dropped</dt><dd>{num(Object.values(t.dropped ?? {}).reduce((a, b) => a + b, 0))}</dd></div><div><dt>Waiting</dt><dd>{num(t.waiting + t.pending)}</dd></div>
            </dl>
            {!t.paused && <NextTimes id={t.id} known={t.next ?? []} />}
            {t.last_tree && <p>Last tree: <JobName id={t.last_tree} of={named(t.last_tree)} tree /></p>}
            {mayAct && <div className="row acts"><button type="button" onClick={() => fire(t)}>Fire now…</button><button type="button" onClick={() => pause(t)}>{t.paused ? 'Resume…' : 'Pause…'}</button></div>}
          </article>
        ))}
      </div>
    </div>
  )
}
