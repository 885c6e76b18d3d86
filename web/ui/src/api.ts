// What the page asks the server. Paths are relative, so that the page works below any prefix.

/** One of several things that are wrong, and where: a pointer into what was sent, or the line of a text. */
export interface Detail { where?: string; message: string }
export interface Problem { status: number; code: string; detail: string; errors?: Detail[] }

/** An answer that is no success, or none at all (status 0). */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly errors: Detail[]
  constructor(p: Problem) {
    super(p.detail)
    this.status = p.status
    this.code = p.code
    this.errors = p.errors ?? []
  }
}

const tokenKey = 'weir-token'
export const getToken = (): string => sessionStorage.getItem(tokenKey) ?? ''
export function setToken(token: string): void {
  if (token) sessionStorage.setItem(tokenKey, token)
  else sessionStorage.removeItem(tokenKey)
}

/** Whether the server answered the last request; those who listen are told of changes. */
export type Reach = { ok: boolean; detail: string; needsToken: boolean }
let reach: Reach = { ok: true, detail: '', needsToken: false }
const listeners = new Set<() => void>()
export const getReach = (): Reach => reach
export function onReach(fn: () => void): () => void {
  listeners.add(fn)
  return () => { listeners.delete(fn) }
}
export function setReach(next: Reach): void {
  if (next.ok === reach.ok && next.detail === reach.detail && next.needsToken === reach.needsToken) return
  reach = next
  for (const fn of listeners) fn()
}

function headers(body: boolean): Record<string, string> {
  const h: Record<string, string> = { Accept: 'application/json' }
  if (getToken()) h['Authorization'] = `Bearer ${getToken()}`
  if (body) h['Content-Type'] = 'application/json'
  return h
}

/** Sends a request, and tells the banner whether the server can be reached. */
export async function send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const token = getToken()
  let answer: Response
  try {
    answer = await fetch(path, {
      method, headers: headers(body !== undefined), signal: signal ?? null, credentials: 'same-origin',
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  } catch (e) {
    if (signal?.aborted) throw e
    setReach({ ok: false, detail: 'The server does not answer.', needsToken: false })
    throw new ApiError({ status: 0, code: 'unreachable', detail: 'The server does not answer. The page goes on as soon as it does.' })
  }
  if (answer.ok) {
    if (path !== 'page.json' || !reach.needsToken) setReach({ ok: true, detail: '', needsToken: false }) // which needs no token
    return answer
  }
  let p: Problem = { status: answer.status, code: 'other', detail: `${answer.status} ${answer.statusText}` }
  try {
    p = { ...p, ...(await answer.json() as Partial<Problem>) }
  } catch { /* no problem document: the status says it */ }
  if (answer.status === 401 && token === getToken()) setReach({ ok: true, detail: p.detail, needsToken: true })
  else if (answer.status >= 502) setReach({ ok: false, detail: p.detail, needsToken: false })
  throw new ApiError(p)
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return await (await send('GET', path, undefined, signal)).json() as T
}

export async function act<T = unknown>(method: string, path: string, body?: unknown): Promise<T | null> {
  const answer = await send(method, path, body)
  const text = await answer.text()
  return text ? JSON.parse(text) as T : null
}

export const enc = encodeURIComponent

/** What an error says, in the words of whoever raised it. */
export const said = (e: unknown): string => e instanceof Error ? e.message : String(e)
