const units: [number, string][] = [[86400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']]

export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  const s = ms / 1000
  for (const [size, unit] of units) {
    if (s >= size) return `${Math.floor(s / size)} ${unit}`
  }
  return '0 s'
}

export function ago(text: string | null | undefined, now = Date.now()): string {
  if (!text) return '–'
  const ms = now - Date.parse(text)
  if (Number.isNaN(ms)) return text
  return ms >= 0 ? `${span(ms)} ago` : `in ${span(-ms)}`
}

/** When something is to happen: now, once its time has come, as nobody waits for what is past. */
export function due(text: string | null | undefined, now = Date.now()): string {
  return text && Date.parse(text) <= now ? 'now' : ago(text, now)
}

const grouped = new Intl.NumberFormat('en-US')
export const num = (n: number): string => grouped.format(n)

export function short(n: number): string {
  if (n < 10_000) return grouped.format(n)
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e5 ? 1 : 0)}k`
  return `${(n / 1e6).toFixed(1)}M`
}

export function rate(n: number): string {
  if (n <= 0) return ''
  return n >= 10 ? `${short(Math.round(n))}/s` : `${n.toFixed(1)}/s`
}

/** A value as a text of a bounded length; what is deeper or longer is left out. */
export function pretty(v: unknown, most = 20_000): string {
  let text: string
  try {
    text = JSON.stringify(v, null, 2) ?? 'null'
  } catch {
    text = '(nested too deeply to be shown)'
  }
  return text.length > most ? `${text.slice(0, most)}\n… ${num(text.length - most)} more characters` : text
}

/** A value in one line. */
export function line(v: unknown): string {
  try {
    return JSON.stringify(v) ?? 'null'
  } catch {
    return '(nested too deeply to be shown)'
  }
}

/** Whether a job merely sleeps until something comes: it is suspended, and nothing holds it up. A reason that begins with × counts children. */
export const isIdle = (status: string, reason?: string | null): boolean => status === 'suspended' && !(reason && !/^(idle\b|\u00d7)/.test(reason))

/** The limit that a job waits for, of its reason; empty of one that waits for none. */
export const limitOf = (status: string, reason?: string | null): string => status === 'queued' ? /^limit: (.+) has (?:no free place|had its runs)$/.exec(reason ?? '')?.[1] ?? '' : ''

/** A duration in seconds, as short as it can be told. */
export function secs(s: number): string {
  if (s <= 0) return '0 ms'
  if (s < 0.01) return `${(s * 1000).toFixed(1)} ms`
  if (s < 1) return `${Math.round(s * 1000)} ms`
  return s < 60 ? `${s.toFixed(1)} s` : span(s * 1000)
}
