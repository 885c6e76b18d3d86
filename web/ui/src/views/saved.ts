import { useSyncExternalStore } from 'react'

/** A view of the list of jobs with a name, which this browser keeps. The URL of a view is the same view for everybody. */
export interface View { name: string; query: string }

const key = 'weir-views'
const most = 50
let text: string | null = null
let views: View[] = []

function read(): View[] {
  const now = localStorage.getItem(key)
  if (now === text) return views
  text = now
  try {
    const all: unknown = JSON.parse(now ?? '[]')
    views = Array.isArray(all) ? all.filter((v): v is View => typeof v?.name === 'string' && typeof v?.query === 'string') : []
  } catch { views = [] }
  return views
}

function write(all: View[]): void {
  if (all.length) localStorage.setItem(key, JSON.stringify(all.slice(-most)))
  else localStorage.removeItem(key)
  dispatchEvent(new Event('weir-views'))
}

export const saveView = (name: string, query: string): void => write([...read().filter(v => v.name !== name), { name, query }])
export const forgetView = (name: string): void => write(read().filter(v => v.name !== name))

function subscribe(fn: () => void): () => void {
  addEventListener('weir-views', fn)
  addEventListener('storage', fn) // other tabs
  return () => { removeEventListener('weir-views', fn); removeEventListener('storage', fn) }
}
export const useViews = (): View[] => useSyncExternalStore(subscribe, read)
