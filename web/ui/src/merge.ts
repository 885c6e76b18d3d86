import type { Changes, Picture } from './types'

/** Puts changes into the picture that they belong to. Values are absolute, so what is merged or lost does no harm. */
export function merge(p: Picture, c: Changes): boolean {
  if (p.epoch !== c.epoch) return false
  c.e?.forEach((edge, i) => {
    p.edges.total[edge] = c.t?.[i] ?? 0
    p.edges.waiting[edge] = c.w?.[i] ?? 0
  })
  c.n?.forEach((node, i) => {
    p.nodes.status[node] = c.s?.[i] ?? -1
    p.nodes.counts[node] = c.c?.[i] ?? null
    p.nodes.note[node] = c.o?.[i] ?? ''
    p.nodes.dead[node] = c.d?.[i] ?? 0
  })
  p.seq = c.seq
  p.ms = c.ms
  return true
}
