import { useEffect, useState, type ReactNode } from 'react'
import { act } from '../api'
import { usePoll, useWho } from '../data'
import { num, pretty } from '../format'
import { useActing } from '../parts/acting'
import { Dialog, Empty, Problem, Time } from '../parts/basics'
import { setQuery, type Route } from '../route'
import type { DeadLetter, DeadLetters, Json } from '../types'
import { JobName, useNames, type NameOf } from '../parts/names'

const rootOf = (id: string): string => id.split('.')[0] ?? id

/** Whose dead letter it is, by the path from an alias, or else with its tree. */
function Whose({ letter, named }: { letter: DeadLetter; named: NameOf }): ReactNode {
  const of = named(letter.job)
  if (letter.name !== letter.job) return <JobName id={letter.job} of={{ ...of, text: letter.name }} />
  const root = rootOf(letter.job)
  return <><JobName id={letter.job} of={of} />{root !== letter.job && <> in tree <JobName id={root} of={named(root)} tree /></>}</>
}

/** Where to send what dead letters hold, if not back to where it came from. */
function Elsewhere({ needed, onChange }: { needed: boolean; onChange: (to: string) => void }): ReactNode {
  return (
    <label className="block">To another job{needed ? '' : ' (if not back to its own)'}
      <input placeholder="alias, ID or path" onChange={e => onChange(e.target.value.trim())} />
    </label>
  )
}

/** What to do where dead letters cannot go back. */
const anew = 'Start the job or graph anew, and requeue to a job there, which needs In ports of the same names.'
const nowhere = (refused: string, to: string): void => { if (refused && !to) throw new Error(`It cannot go back, as ${refused}: name another job.`) }

/** Requeues a dead letter with other messages than it holds, at once with its removal. */
function Edit({ letter, named, onClose, onDone }: { letter: DeadLetter; named: NameOf; onClose: () => void; onDone: (said: string) => void }): ReactNode {
  const [texts, setTexts] = useState(() => Object.fromEntries(Object.entries(letter.messages).map(([p, v]) => [p, JSON.stringify(v, null, 2)])))
  const [to, setTo] = useState('')
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const run = async (): Promise<void> => {
    const messages: Record<string, Json> = {}
    for (const [port, text] of Object.entries(texts)) {
      try { messages[port] = JSON.parse(text) as Json } catch (e) { setError(`Port ${port}: ${e instanceof Error ? e.message : ''}`); return }
    }
    setBusy(true)
    try {
      nowhere(letter.refused ?? '', to)
      await act('POST', 'v1/dead/requeue', { job: letter.in.job, ...(to ? { to } : {}), ...(letter.in.port === 'errors' ? {} : { port: letter.in.port }), letters: [letter.id], messages })
      onClose()
      onDone('The edited messages were sent, and the letter is gone')
    } catch (e) { setError(e instanceof Error ? e.message : String(e)); setBusy(false) }
  }
  return (
    <Dialog title="Edit, then send again" onClose={onClose} wide>
      <p className="faint">What stands here goes to the In ports of {letter.refused ? 'another job' : <Whose letter={letter} named={named} />}, and the dead letter is removed.{letter.refused && ` It cannot go back, as ${letter.refused}. ${anew}`}</p>
      <Elsewhere needed={!!letter.refused} onChange={setTo} />
      {Object.entries(texts).map(([p, text]) => <label key={p} className="block">Port <bdi>{p}</bdi><textarea rows={8} spellCheck={false} value={text} onChange={e => setTexts(old => ({ ...old, [p]: e.target.value }))} /></label>)}
      <Problem text={error} />
      <div className="row end"><button type="button" onClick={onClose}>Cancel</button><button type="button" className="primary" disabled={busy} onClick={() => { void run() }}>Send, and remove the letter</button></div>
    </Dialog>
  )
}

export function DeadView({ route }: { route: Route }): ReactNode {
  const job = route.query.get('job') ?? ''
  const error = route.query.get('error') ?? ''
  const q = new URLSearchParams({ limit: '200', ...(job ? { job } : {}), ...(error ? { error } : {}) })
  const list = usePoll<DeadLetters>(`v1/dead?${q}`, 3000)
  const [editing, setEditing] = useState<DeadLetter | null>(null)
  const { mayAct } = useWho()
  const { ask, tell, done } = useActing()
  const { again } = list
  useEffect(() => { if (done) again() }, [done, again])
  const means = (l: DeadLetter): Record<string, unknown> => ({ job: l.in.job, letters: [l.id], ...(l.in.port === 'errors' ? {} : { port: l.in.port }) })
  const act1 = (path: string, body: unknown, did: string) => async (): Promise<string> => {
    const answer = await act<{ done: number; error?: string }>('POST', path, body)
    if (answer?.error && !answer.done) throw new Error(answer.error)
    return `${num(answer?.done ?? 0)} ${did}${answer?.error ? `; others not: ${answer.error}` : ''}`
  }
  const letters = list.data?.letters ?? []
  const named = useNames(letters.flatMap(l => l.name === l.job ? [l.job, rootOf(l.job)] : [l.job]))
  const requeue = (title: string, text: ReactNode, refused: string, verb: string, body: Record<string, unknown>): void => {
    let to = ''
    ask({
      title, text: <><p>{text}</p>{refused && <p>{anew}</p>}<Elsewhere needed={!!refused} onChange={v => { to = v }} /></>, verb,
      run: () => { nowhere(refused, to); return act1('v1/dead/requeue', { ...body, ...(to ? { to } : {}) }, 'requeued')() },
    })
  }
  const requeueOne = (l: DeadLetter): void => requeue('Requeue this dead letter?', l.refused
    ? `What it holds cannot go back, as ${l.refused}. It goes to another job, and the dead letter is removed.`
    : <>What it holds goes back to the In ports of <Whose letter={l} named={named} />, and the dead letter is removed.</>, l.refused ?? '', 'Requeue', means(l))
  const requeueAll = (): void => {
    const refused = letters.filter(l => l.refused)
    const all = refused.length === letters.length && !list.data?.more
    requeue(`Requeue ${num(letters.length)}${list.data?.more ? '+' : ''} dead letters?`, refused.length === 0
      ? 'What they hold goes back to the In ports it came from, and they are removed.'
      : `What ${all ? 'they hold' : `${num(refused.length)} of them hold`} cannot go back, as ${refused[0]?.refused ?? ''}. What goes to another job, or back, is removed here.`,
    all ? refused[0]?.refused ?? '' : '', 'Requeue all', { ...(job ? { job } : {}), ...(error ? { error } : {}), ...(!job && !error ? { since: '1970-01-01T00:00:00Z' } : {}) })
  }
  return (
    <div className="view">
      <div className="head"><h1>Dead letters</h1>{mayAct && letters.length > 0 && <button type="button" onClick={requeueAll}>Requeue all…</button>}</div>
      <form className="filters" role="search" onSubmit={e => e.preventDefault()}>
        <label>Job <input data-search="" defaultValue={job} placeholder="alias, ID or path" onBlur={e => setQuery(route, { job: e.target.value.trim() })} onKeyDown={e => { if (e.key === 'Enter') setQuery(route, { job: e.currentTarget.value.trim() }) }} /></label>
        <label>Error <input defaultValue={error} placeholder="a text in it" onKeyDown={e => { if (e.key === 'Enter') setQuery(route, { error: e.currentTarget.value }) }} onBlur={e => setQuery(route, { error: e.target.value })} /></label>
      </form>
      <Problem text={list.error} />
      {list.data && letters.length === 0 && <Empty title="No dead letters."><p>What a job with the failure policy <code>dead_letter</code> cannot handle comes here.</p></Empty>}
      <div className="cards wide">
        {letters.map(l => (
          <article key={`${l.in.job} ${l.id}`} className="card" aria-label={`Dead letter ${l.id}`}>
            <p className="error"><bdi>{l.error}</bdi></p>
            <p className="faint">of <Whose letter={l} named={named} />, <Time at={l.at} /></p>
            {Object.entries(l.messages).map(([p, v]) => <div key={p}><p>Port <bdi>{p}</bdi></p><pre tabIndex={0} aria-label={`Message of port ${p}`}>{pretty(v, 4000)}</pre></div>)}
            {l.refused && <p className="faint">It cannot go back: <bdi>{l.refused}</bdi>.</p>}
            {mayAct && (
              <div className="row acts">
                <button type="button" onClick={() => requeueOne(l)}>{l.refused ? 'Requeue to another job…' : 'Requeue…'}</button>
                <button type="button" onClick={() => setEditing(l)}>Edit…</button>
                <button type="button" className="danger" onClick={() => ask({ title: 'Discard this dead letter?', text: 'What it holds is removed for good. This cannot be undone.', verb: 'Discard', danger: true, run: act1('v1/dead/discard', means(l), 'discarded') })}>Discard…</button>
              </div>
            )}
          </article>
        ))}
      </div>
      {editing && <Edit letter={editing} named={named} onClose={() => setEditing(null)} onDone={tell} />}
    </div>
  )
}
