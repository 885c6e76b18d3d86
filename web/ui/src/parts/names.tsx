import { useEffect, useSyncExternalStore, type ReactNode } from 'react'
import { get } from '../api'
import { JobLink } from './basics'
import type { JobName } from '../types'

/** What a job is called, and whether it is there: one that was removed has no page to lead to. */
export interface Named { text: string; there: boolean; gone: boolean }
export type NameOf = (id: string) => Named

interface Known { name: string; there: boolean; gone: boolean; at: number }
const known = new Map<string, Known>()
const asking = new Set<string>()
const most = 400 // as many as a log has entries
const batch = 100
const fresh = 5000 // ms: children may be removed at any time; one that was never comes back

let version = 0
const listeners = new Set<() => void>()
function subscribe(fn: () => void): () => void {
  listeners.add(fn)
  return () => { listeners.delete(fn) }
}

const number = (id: string): string => id.includes('.') ? `#${id.split('.')[1] ?? ''}` : id

function learn(id: string, name: string | undefined, gone: boolean): boolean {
  const old = known.get(id)
  const now = { name: name ?? old?.name ?? number(id), there: name !== undefined, gone: gone || old?.gone === true, at: Date.now() }
  known.set(id, now)
  return old?.name !== now.name || old.there !== now.there || old.gone !== now.gone
}

/** Asks for names, in one request for each hundred: those that the server does not have were removed. */
async function ask(ids: string[]): Promise<void> {
  for (const id of ids) asking.add(id)
  let changed = false
  try {
    const found = new Map((await get<JobName[]>(`v1/names?id=${ids.join(',')}`)).map(n => [n.id, n.name]))
    for (const id of ids) changed = learn(id, found.get(id), !found.has(id)) || changed
  } catch { // the server is away, or the token may not: later
    for (const id of ids) if (!known.has(id)) changed = learn(id, undefined, false) || changed
  }
  for (const id of ids) asking.delete(id)
  if (!changed) return
  version++
  for (const fn of listeners) fn()
}

function due(ids: string): string[] {
  const now = Date.now()
  return ids.split(' ').filter(id => {
    const k = known.get(id)
    return id && !asking.has(id) && !k?.gone && now - (k?.at ?? 0) >= fresh
  })
}

/** What jobs are called, of many only of the first; whether they are there is asked again and again. */
export function useNames(ids: string[]): NameOf {
  useSyncExternalStore(subscribe, () => version)
  const wanted = [...new Set(ids)].slice(0, most).join(' ')
  useEffect(() => {
    if (!wanted) return
    const look = (): void => {
      if (document.hidden) return
      const all = due(wanted)
      for (let i = 0; i < all.length; i += batch) void ask(all.slice(i, i + batch))
    }
    look()
    const timer = setInterval(look, fresh)
    return () => clearInterval(timer)
  }, [wanted])
  return id => {
    const k = known.get(id)
    return { text: k ? `${k.name}${k.gone ? ' (removed)' : ''}` : number(id), there: k?.there ?? false, gone: k?.gone ?? false }
  }
}

/** Whether all of these jobs have been asked for; of more than are asked for, the first. */
export const areNamed = (ids: string[]): boolean => [...new Set(ids)].slice(0, most).every(id => known.has(id))

/** A job by its name, with a link to it if it is there. */
export function JobName({ id, of, tree }: { id: string; of: Named; tree?: boolean }): ReactNode {
  if (of.there) return <JobLink id={id} name={of.text} {...(tree ? { tree } : {})} />
  return <span className={of.gone ? 'faint' : undefined} title={of.gone ? 'It has ended, and was removed' : undefined}><bdi>{of.text}</bdi></span>
}
