import { createContext, useCallback, useContext, useMemo, useRef, useState, type ReactNode } from 'react'
import { said as words } from '../api'
import { Confirm, type Asking, type Outcome } from './basics'

/** What takes back what was done. */
export type Undo = () => unknown
interface Acting { ask: (a: Asking) => void; tell: (text: string, undo?: Undo) => void; done: number }
const Context = createContext<Acting>({ ask: () => undefined, tell: () => undefined, done: 0 })

/** useActing asks before acts, and says afterwards what became of them, with a way back where there is one. `done` changes with each act. */
export const useActing = (): Acting => useContext(Context)

export function ActingProvider({ children }: { children: ReactNode }): ReactNode {
  const [asking, setAsking] = useState<Asking | null>(null)
  const [said, setSaid] = useState<Outcome | null>(null)
  const [done, setDone] = useState(0)
  const timer = useRef(0)
  const tell = useCallback((text: string, undo?: Undo) => {
    setSaid({ said: text, ...(undo ? { undo } : {}) })
    setDone(n => n + 1)
    clearTimeout(timer.current)
    timer.current = window.setTimeout(() => setSaid(null), undo ? 15_000 : 6000)
  }, [])
  const back = async (undo: Undo): Promise<void> => {
    try { await undo(); tell('Taken back') } catch (e) { tell(`It cannot be taken back: ${words(e)}`) }
  }
  const value = useMemo(() => ({ ask: setAsking, tell, done }), [tell, done])
  return (
    <Context.Provider value={value}>
      {children}
      {asking && <Confirm ask={asking} onClose={() => setAsking(null)} onDone={o => tell(o.said, o.undo)} />}
      <div className="toast" role="status" aria-live="polite">
        {said && <p>{said.said}{said.undo && <button type="button" onClick={() => { if (said.undo) void back(said.undo) }}>Undo</button>}</p>}
      </div>
    </Context.Provider>
  )
}
