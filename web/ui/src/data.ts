import { createContext, useCallback, useContext, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { ApiError, get, getReach, onReach, type Reach } from './api'
import type { Me } from './types'

export const useReach = (): Reach => useSyncExternalStore(onReach, getReach)

export interface Loaded<T> { data: T | null; error: string; again: () => void }

/** Asks now and every so often while the page can be seen. What was answered last stays while the server is away. */
export function usePoll<T>(path: string | null, every = 2000): Loaded<T> {
  const [at, setAt] = useState<{ path: string | null; data: T | null; error: string }>({ path, data: null, error: '' })
  const [turn, setTurn] = useState(0)
  const again = useCallback(() => setTurn(n => n + 1), [])
  useEffect(() => {
    if (path === null) return
    const stop = new AbortController()
    let timer = 0
    let last = 0
    const ask = async (): Promise<void> => {
      const mine = ++last
      const late = (): boolean => mine !== last || stop.signal.aborted // then a later one answers, and goes on asking
      if (!document.hidden) {
        try {
          const data = await get<T>(path, stop.signal)
          if (late()) return
          setAt({ path, data, error: '' })
        } catch (e) {
          if (late()) return
          const error = e instanceof Error ? e.message : String(e)
          const away = e instanceof ApiError && (e.status === 0 || e.status >= 502)
          setAt(old => ({ path, data: old.path === path && (away || e instanceof ApiError && e.status === 401) ? old.data : null, error: away ? '' : error }))
        }
      }
      if (!late()) timer = window.setTimeout(() => { void ask() }, every)
    }
    void ask()
    const seen = (): void => { if (!document.hidden) { clearTimeout(timer); void ask() } }
    document.addEventListener('visibilitychange', seen)
    return () => { stop.abort(); clearTimeout(timer); document.removeEventListener('visibilitychange', seen) }
  }, [path, every, turn])
  return { data: at.path === path ? at.data : null, error: at.path === path ? at.error : '', again }
}

/** The last values of something, for sparklines: what came while the page was open. */
export function useHistory(value: number | undefined, at: string | undefined, most = 120): number[] {
  const all = useRef<number[]>([])
  const last = useRef<string | undefined>(undefined)
  if (value !== undefined && at !== last.current) {
    last.current = at
    all.current = [...all.current, value].slice(-most)
  }
  return all.current
}

export interface Who { me: Me | null; mayAct: boolean; readOnly: boolean; traceURL: string }
export const WhoContext = createContext<Who>({ me: null, mayAct: false, readOnly: false, traceURL: '' })
export const useWho = (): Who => useContext(WhoContext)
