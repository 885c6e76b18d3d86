import { useMemo, useSyncExternalStore } from 'react'

// Where the page is stands behind the # of the URL, so any prefix and any file server will do, and a link to it can be sent.

export interface Route { view: string; id: string; query: URLSearchParams }

function subscribe(fn: () => void): () => void {
  addEventListener('hashchange', fn)
  return () => removeEventListener('hashchange', fn)
}

export function parse(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const [view = '', ...rest] = path.split('/')
  let id = rest.join('/')
  try { id = decodeURIComponent(id) } catch { /* it stays as it is */ }
  return { view: view || 'overview', id, query: new URLSearchParams(query) }
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => location.hash)
  return useMemo(() => parse(hash), [hash])
}

export function link(view: string, id = '', query: Record<string, string> = {}): string {
  const q = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== '')).toString()
  return `#/${view}${id ? '/' + encodeURIComponent(id) : ''}${q ? '?' + q : ''}`
}

export const go = (to: string): void => { location.hash = to }

/** Changes parameters of the place as it is now, without a step back for each letter that is typed. A place that was left stays as it is. */
export function setQuery(route: Route, change: Record<string, string>): void {
  const now = parse(location.hash)
  if (now.view !== route.view || now.id !== route.id) return
  history.replaceState(null, '', link(now.view, now.id, { ...Object.fromEntries(now.query), ...change }))
  dispatchEvent(new HashChangeEvent('hashchange'))
}

/** The views of the navigation: where, what they are called, and the key behind g. */
export const places: [string, string, string][] = [
  ['overview', 'Overview', 'o'], ['jobs', 'Jobs', 'j'], ['triggers', 'Triggers', 't'], ['queues', 'Queues', 'u'], ['dead', 'Dead letters', 'd'], ['start', 'Start', 's'], ['admin', 'Admin', 'a'],
]
