import { useSyncExternalStore } from 'react'
import type { Spot } from './geometry'

const nowhere: Spot = { node: -1, edge: -1 }

/** What is selected. Only what shows it is told of changes, not each box. */
export class Pick {
  private at = nowhere
  private readonly listeners = new Set<() => void>()
  get = (): Spot => this.at
  set(at: Partial<Spot>): void {
    this.at = { ...nowhere, ...at }
    for (const fn of this.listeners) fn()
  }
  subscribe = (fn: () => void): (() => void) => {
    this.listeners.add(fn)
    return () => { this.listeners.delete(fn) }
  }
}

export const usePicked = (pick: Pick): Spot => useSyncExternalStore(pick.subscribe, pick.get)
