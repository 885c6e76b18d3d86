import { useCallback, useEffect, useRef, useState } from 'react'
import { ApiError, get, said } from '../api'
import type { Job, JobPage } from '../types'

/** What a list shows of a job: 100,000 of them must fit. */
export type Row = Pick<Job, 'id' | 'name' | 'type' | 'status' | 'queue' | 'reason' | 'created_at' | 'ran_at' | 'parent' | 'aliases'> & { dead?: number }

const rowOf = (j: Job): Row => ({
  id: j.id, name: j.name, type: j.type, status: j.status, queue: j.queue, created_at: j.created_at, ran_at: j.ran_at, parent: j.parent, aliases: j.aliases, dead: j.out['errors']?.size ?? 0,
  reason: (j.reason ?? (j.status === 'failed' ? j.errors?.[0]?.message : null) ?? null)?.slice(0, 300) ?? null,
})

interface Page { after: string; rows: Row[]; next: string }
export interface Pages { key: string; rows: Row[]; left: boolean; loaded: boolean; error: string }

const first = 200
const size = 1000 // of the pages behind the first one
const every = 2000

/** How far a page that is read again reaches into the one behind it, which must not be shown twice. */
function cut(rows: Row[], behind: Page | undefined, end: string): { rows: Row[]; met: boolean } {
  const at = rows.findIndex(r => r.id === behind?.rows[0]?.id)
  if (at >= 0) return { rows: rows.slice(0, at), met: true }
  const last = rows.findIndex(r => r.id === end)
  return last >= 0 ? { rows: rows.slice(0, last + 1), met: true } : { rows, met: false }
}

/**
 * The jobs that pass a filter, page by page as somebody scrolls to them. The page that is seen is read again every two seconds, so what
 * is on the screen is as it is; what has come meanwhile is put in front of what was known.
 */
export function useJobPages(filter: string, order: string): Pages & { more: () => void; again: () => void; see: (row: number) => void } {
  const key = `${filter} ${order}`
  const pages = useRef<{ key: string; list: Page[] }>({ key, list: [] })
  const seen = useRef(0)
  const busy = useRef(false)
  const [state, setState] = useState<Pages>({ key, rows: [], left: false, loaded: false, error: '' })
  const [turn, setTurn] = useState(0)

  const show = useCallback((error = '') => {
    const list = pages.current.list
    setState({ key, rows: list.flatMap(p => p.rows), left: Boolean(list.at(-1)?.next), loaded: list.length > 0, error })
  }, [key])
  const read = useCallback(async (after: string, limit: number, signal?: AbortSignal): Promise<Page> => {
    const page = await get<JobPage>(`v1/jobs?${filter}&order=${order}&limit=${limit}${after ? `&after=${after}` : ''}`, signal)
    return { after, rows: page.jobs.map(rowOf), next: page.next ?? '' }
  }, [filter, order])

  useEffect(() => {
    pages.current = { key, list: [] }
    seen.current = 0
    const stop = new AbortController()
    let timer = 0
    /** Reads the page again that is on the screen. */
    const step = async (): Promise<void> => {
      if (!document.hidden && !busy.current) {
        const list = pages.current.list
        let at = 0
        for (let rows = list[0]?.rows.length ?? 0; at < list.length - 1 && rows <= seen.current; at++) rows += list[at + 1]?.rows.length ?? 0
        const old = list[at]
        const behind = list[at + 1]
        try {
          const fresh = await read(old?.after ?? '', Math.min(size, Math.max(first, old?.rows.length ?? 0)), stop.signal)
          if (pages.current.list[at] === old) {
            const { rows, met } = behind ? cut(fresh.rows, behind, old?.next ?? '') : { rows: fresh.rows, met: true }
            const next = { after: fresh.after, rows, next: behind && met ? old?.next ?? '' : fresh.next }
            // More has come than one page holds, or the order has changed: what is behind is read anew when it is scrolled to.
            pages.current.list = met ? [...list.slice(0, at), next, ...list.slice(at + 1)] : [...list.slice(0, at), next]
            show()
          }
        } catch (e) {
          if (stop.signal.aborted) return
          const away = e instanceof ApiError && (e.status === 0 || e.status >= 502 || e.status === 401)
          if (!away) { pages.current.list = []; show(said(e)) }
        }
      }
      if (!stop.signal.aborted) timer = window.setTimeout(() => { void step() }, every)
    }
    void step()
    return () => { stop.abort(); clearTimeout(timer) }
  }, [key, read, show, turn])

  const more = useCallback(() => {
    const last = pages.current.list.at(-1)
    if (busy.current || !last?.next) return
    busy.current = true
    const of = pages.current.key
    read(last.next, size).then(page => {
      if (pages.current.key !== of || pages.current.list.at(-1) !== last) return
      pages.current.list = [...pages.current.list, page]
      show()
    }).catch((e: unknown) => show(said(e))).finally(() => { busy.current = false })
  }, [read, show])
  const again = useCallback(() => setTurn(n => n + 1), [])
  const see = useCallback((row: number) => { seen.current = row }, [])
  const current = state.key === key ? state : { key, rows: [], left: false, loaded: false, error: '' }
  return { ...current, more, again, see }
}
