// A stream of server-sent events that is kept open: by the worker that all tabs share, or by a tab itself.

export type Heard = (kind: string, data: string) => void

const silence = 40_000 // ms without anything, not even that the stream is alive: the connection is dead
const again = 1000

/** Splits what comes into events, and tells of each. */
async function read(body: ReadableStream<Uint8Array>, on: Heard, alive: () => void): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  let parts: string[] = []
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    alive()
    parts.push(value)
    if (!value.includes('\n')) continue // a large event comes in many pieces
    let rest = parts.join('')
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      let kind = 'message'
      let data = ''
      for (const line of rest.slice(0, end).split('\n')) {
        if (line.startsWith('event: ')) kind = line.slice(7)
        else if (line.startsWith('data: ')) data += line.slice(6)
      }
      rest = rest.slice(end + 2)
      if (data) on(kind, data)
    }
    parts = [rest]
  }
}

/**
 * Follows a stream, with a token in a header, which EventSource cannot send, and opens it again when it ends, until the signal says
 * that it is over. Besides the events of the server it tells `open`, `away`, and `refused` with the problem that was answered.
 */
export async function keepOpen(url: string, token: string, signal: AbortSignal, on: Heard): Promise<void> {
  while (!signal.aborted) {
    const one = new AbortController()
    const stop = (): void => one.abort()
    signal.addEventListener('abort', stop)
    let timer = setTimeout(stop, silence)
    try {
      const answer = await fetch(url, { signal: one.signal, credentials: 'same-origin', headers: { Accept: 'text/event-stream', ...(token ? { Authorization: `Bearer ${token}` } : {}) } })
      if (answer.ok && answer.body) {
        on('open', '')
        await read(answer.body, on, () => { clearTimeout(timer); timer = setTimeout(stop, silence) })
        if (!signal.aborted) on('away', '')
      } else if (!signal.aborted) {
        on('refused', JSON.stringify({ status: answer.status, detail: await detail(answer) }))
        if (answer.status === 401 || answer.status === 404) return
      }
    } catch {
      if (!signal.aborted) on('away', '')
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
    if (!signal.aborted) await new Promise(done => setTimeout(done, again))
  }
}

async function detail(answer: Response): Promise<string> {
  try {
    const text = (await answer.json() as { detail?: string }).detail
    if (text) return text
  } catch { /* no problem document: the status says it */ }
  return `${answer.status} ${answer.statusText}`
}
