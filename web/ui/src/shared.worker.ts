// One for all tabs of a browser: a tree that several of them show is streamed once. Browsers allow six connections to a server, which
// as many tabs would use up.
import { keepOpen } from './keep'
import { merge } from './merge'
import type { Asked, Told } from './follow'
import type { Changes, Picture } from './types'

const gone = 90_000 // ms after which a tab that said nothing is taken to be closed: it says something every 20 seconds
const most = 100 // changes that are kept before they are put into the snapshot

interface Stream {
  stop: AbortController
  tabs: Map<MessagePort, Set<number>>
  snapshot: string
  changes: string[]
  last: Told | null // how the connection is, if it is not well
}
const streams = new Map<string, Stream>()
const heard = new Map<MessagePort, number>()

/** What a tab that comes later has to know: the picture as it is now. */
function now(s: Stream): string {
  if (s.changes.length === 0) return s.snapshot
  const p = JSON.parse(s.snapshot) as Picture
  for (const c of s.changes) merge(p, JSON.parse(c) as Changes)
  s.changes = []
  return s.snapshot = JSON.stringify(p)
}

function open(key: string, url: string, token: string): Stream {
  const s: Stream = { stop: new AbortController(), tabs: new Map(), snapshot: '', changes: [], last: null }
  streams.set(key, s)
  void keepOpen(url, token, s.stop.signal, (kind, data) => {
    if (kind === 'snapshot') { s.snapshot = data; s.changes = [] } else if (kind === 'change') {
      s.changes.push(data)
      if (s.changes.length > most) now(s)
    }
    s.last = kind === 'snapshot' || kind === 'change' || kind === 'open' ? null : { id: 0, kind, data }
    for (const [port, ids] of s.tabs) for (const id of ids) port.postMessage({ id, kind, data } satisfies Told)
  }).then(() => { if (streams.get(key) === s) streams.delete(key) }) // who asks later asks the server again
  return s
}

function close(port: MessagePort, id?: number): void {
  for (const [key, s] of streams) {
    const ids = s.tabs.get(port)
    if (!ids || id !== undefined && !ids.delete(id)) continue
    if (id === undefined || ids.size === 0) s.tabs.delete(port)
    if (s.tabs.size === 0) { s.stop.abort(); streams.delete(key) }
  }
}

const scope = globalThis as unknown as { onconnect: (e: MessageEvent) => void }
scope.onconnect = e => {
  const port = e.ports[0]
  if (!port) return
  heard.set(port, Date.now())
  port.onmessage = (m: MessageEvent<Asked>) => {
    const asked = m.data
    heard.set(port, Date.now())
    if (asked.kind === 'close') close(port, asked.id)
    if (asked.kind === 'leave') { close(port); heard.delete(port) }
    if (asked.kind !== 'open') return
    const key = `${asked.token} ${asked.url}`
    const s = streams.get(key) ?? open(key, asked.url, asked.token)
    const ids = s.tabs.get(port) ?? new Set()
    s.tabs.set(port, ids.add(asked.id))
    if (s.snapshot) port.postMessage({ id: asked.id, kind: 'snapshot', data: now(s) } satisfies Told)
    if (s.last) port.postMessage({ ...s.last, id: asked.id } satisfies Told)
  }
}

setInterval(() => {
  for (const [port, at] of heard) if (Date.now() - at > gone) { close(port); heard.delete(port) }
}, 20_000)
