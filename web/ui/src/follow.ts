import { getToken } from './api'
import { keepOpen, type Heard } from './keep'

/** What a tab asks of the worker that all tabs share, and what that tells of a stream. */
export type Asked = { kind: 'open'; id: number; url: string; token: string } | { kind: 'close'; id: number } | { kind: 'alive' } | { kind: 'leave' }
export interface Told { id: number; kind: string; data: string }

interface Stream { url: string; on: Heard; alone: AbortController | null }
const streams = new Map<number, Stream>()
let worker: MessagePort | null | undefined
let last = 0

/** Follows a stream in this tab. */
function alone(s: Stream): void {
  s.alone = new AbortController()
  void keepOpen(s.url, getToken(), s.alone.signal, s.on)
}

/** The worker; null if the browser has none, or it cannot be loaded, as after an update of the server. */
function shared(): MessagePort | null {
  if (worker !== undefined) return worker
  worker = null
  if (typeof SharedWorker === 'undefined') return null
  try {
    const w = new SharedWorker(new URL('./shared.worker.ts', import.meta.url), { type: 'module', name: 'weir' })
    w.onerror = () => {
      worker = null
      for (const s of streams.values()) if (!s.alone) alone(s)
    }
    const port = worker = w.port
    port.onmessage = (m: MessageEvent<Told>) => streams.get(m.data.id)?.on(m.data.kind, m.data.data)
    setInterval(() => port.postMessage({ kind: 'alive' } satisfies Asked), 20_000)
    addEventListener('pagehide', () => port.postMessage({ kind: 'leave' } satisfies Asked))
  } catch { /* each stream is followed here */ }
  return worker
}

/** Follows a stream of the server, which tabs that follow the same share, until what it returns is called. */
export function follow(path: string, on: Heard): () => void {
  const s: Stream = { url: new URL(path, document.baseURI).href, on, alone: null }
  const id = ++last
  streams.set(id, s)
  const port = shared()
  if (port) port.postMessage({ kind: 'open', id, url: s.url, token: getToken() } satisfies Asked)
  else alone(s)
  return () => {
    streams.delete(id)
    s.alone?.abort()
    port?.postMessage({ kind: 'close', id } satisfies Asked)
  }
}
