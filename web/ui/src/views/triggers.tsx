import { useEffect, type ReactNode } from 'react'
import { act, enc } from '../api'
import { usePoll, useWho } from '../data'
import { num } from '../format'
import { useActing } from '../parts/acting'
import { Empty, JobLink, Problem, Time } from '../parts/basics'
import type { Trigger } from '../types'

export function TriggersView(): ReactNode {
  const list = usePoll<Trigger[]>('v1/triggers', 2000)
  const { mayAct } = useWho()
  const { ask, done } = useActing()
  const { again } = list
  useEffect(() => { if (done) again() }, [done, again])
  const name = (t: Trigger): string => t.aliases?.[0] ?? t.id
  const post = (t: Trigger, verb: string, said: string) => async (): Promise<string> => { await act('POST', `v1/triggers/${enc(t.id)}/${verb}`); return said }
  const fire = (t: Trigger): void => ask({ title: `Fire ${name(t)} now?`, text: 'It launches its tree once more, besides the times of its schedule.', verb: 'Fire now', run: post(t, 'fire', `${name(t)} fires`) })
  const pause = (t: Trigger): void => ask(t.paused
    ? { title: `Resume ${name(t)}?`, text: 'It fires again from its next time on.', verb: 'Resume', run: post(t, 'resume', `${name(t)} is resumed`) }
    : { title: `Pause ${name(t)}?`, text: 'What would fire is dropped until it is resumed. Trees that it launched go on.', verb: 'Pause', run: post(t, 'pause', `${name(t)} is paused`) })
  return (
    <div className="view">
      <h1>Triggers</h1>
      <Problem text={list.error} />
      {list.data?.length === 0 && <Empty title="No triggers yet."><p>Make one: <code>weir trigger add --schedule '30 9 * * MON-FRI' --type report</code>, or <code>POST v1/triggers</code></p></Empty>}
      <div className="cards">
        {list.data?.map(t => (
          <article key={t.id} className="card" aria-label={`Trigger ${name(t)}`}>
            <div className="head"><h2><JobLink id={t.id} name={name(t)} /></h2><span className={`status ${t.paused ? 's-suspended' : 's-running'}`}>{t.paused ? 'ǁ paused' : `● ${t.kind}`}</span></div>
            {t.understood && <p><bdi>{t.understood}</bdi></p>}
            {t.reason && <p className="error"><bdi>{t.reason}</bdi></p>}
            <dl className="facts">
              <div><dt>Next</dt><dd>{t.next?.[0] ? <Time at={t.next[0]} /> : '–'}</dd></div><div><dt>Last</dt><dd><Time at={t.last} /></dd></div>
              <div><dt>Fired</dt><dd>{num(t.firings)}</dd></div><div><dt>Launched</dt><dd>{num(t.launches)}</dd></div>
              <div><dt>Dropped</dt><dd>{num(Object.values(t.dropped ?? {}).reduce((a, b) => a + b, 0))}</dd></div><div><dt>Waiting</dt><dd>{num(t.waiting + t.pending)}</dd></div>
            </dl>
            {t.last_tree && <p>Last tree: <JobLink id={t.last_tree} tree /></p>}
            {mayAct && <div className="row acts"><button type="button" onClick={() => fire(t)}>Fire now…</button><button type="button" onClick={() => pause(t)}>{t.paused ? 'Resume…' : 'Pause…'}</button></div>}
          </article>
        ))}
      </div>
    </div>
  )
}
