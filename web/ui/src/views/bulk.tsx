import { act, enc, get } from '../api'
import { num } from '../format'
import type { Asking } from '../parts/basics'
import type { JobPage } from '../types'
import type { Row } from './jobpages'

export type Verb = 'retry' | 'terminate' | 'delete'

const words: Record<Verb, { verb: string; did: string; when: string; what: string }> = {
  retry: { verb: 'Retry', did: 'retried', when: 'failed', what: 'Each gets another run now. Its inputs are unread still, so nothing is done twice.' },
  terminate: { verb: 'Terminate', did: 'terminated', when: '', what: 'A run in progress finishes, then the job and all below it end. What waits in their ports stays, and is not handled.' },
  delete: { verb: 'Delete', did: 'deleted', when: 'terminated', what: 'They are removed with all below them: messages, state and logs. This cannot be undone.' },
}

/** All jobs that pass a filter, up to a bound. */
async function passing(filter: string, most: number): Promise<Row[]> {
  const all: Row[] = []
  for (let after = ''; all.length < most;) {
    const page = await get<JobPage>(`v1/jobs?${filter}&limit=1000${after ? `&after=${after}` : ''}`)
    all.push(...page.jobs)
    if (!page.next) break
    after = page.next
  }
  return all.slice(0, most)
}

async function apply(verb: Verb, id: string): Promise<void> {
  switch (verb) {
    case 'retry': await act('POST', `v1/jobs/${enc(id)}/retry`, {}); break
    case 'terminate': await act('POST', `v1/jobs/${enc(id)}/terminate`, { recursive: true }); break
    case 'delete': await act('DELETE', `v1/jobs/${enc(id)}`)
  }
}

const most = 10_000

/** Looks which jobs are meant, and asks with their number before anything is done with them. */
export async function bulkAsk(verb: Verb, chosen: Row[] | null, filter: string): Promise<Asking> {
  const w = words[verb]
  const q = new URLSearchParams(filter)
  if (!chosen && w.when && !q.has('status')) q.set('status', w.when)
  const all = (chosen ?? await passing(q.toString(), most)).filter(j => (w.when ? j.status === w.when : !['completed', 'terminated'].includes(j.status)))
  const n = all.length
  const some = all.slice(0, 5).map(j => j.aliases?.[0] ?? j.name ?? j.id)
  if (n === 0) return { title: 'Nothing to do', text: w.when ? `No job that is meant is ${w.when}.` : 'All jobs that are meant have ended.', verb: 'Close', run: () => Promise.resolve('Nothing was changed') }
  return {
    title: `${w.verb} ${num(n)} ${n === 1 ? 'job' : 'jobs'}?`,
    text: <><p>{w.what}</p><ul>{some.map(s => <li key={s}><bdi>{s}</bdi></li>)}</ul>{n > 5 && <p className="faint">… and {num(n - 5)} more{n === most ? ', and those behind the first 10,000 stay as they are' : ''}</p>}</>,
    verb: `${w.verb} ${num(n)}`, danger: verb !== 'retry',
    run: async () => {
      let did = 0
      let first = ''
      const todo = [...all]
      const worker = async (): Promise<void> => {
        for (let j = todo.shift(); j; j = todo.shift()) {
          try { await apply(verb, j.id); did++ } catch (e) { first ||= e instanceof Error ? e.message : String(e) }
        }
      }
      await Promise.all(Array.from({ length: 6 }, worker))
      if (did === 0) throw new Error(first)
      return `${num(did)} of ${num(n)} ${w.did}${first ? `; the others: ${first}` : ''}`
    },
  }
}
