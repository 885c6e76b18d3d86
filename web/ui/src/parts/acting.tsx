import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from 'react'
import { Confirm, type Asking } from './basics'

interface Acting { ask: (a: Asking) => void; tell: (text: string) => void; done: number }
const Context = createContext<Acting>({ ask: () => undefined, tell: () => undefined, done: 0 })

/** useActing asks before acts, and says afterwards what became of them. `done` changes with each act. */
export const useActing = (): Acting => useContext(Context)

export function ActingProvider({ children }: { children: ReactNode }): ReactNode {
  const [asking, setAsking] = useState<Asking | null>(null)
  const [said, setSaid] = useState('')
  const [done, setDone] = useState(0)
  const tell = useCallback((text: string) => {
    setSaid(text)
    setDone(n => n + 1)
    setTimeout(() => setSaid(now => now === text ? '' : now), 6000)
  }, [])
  const value = useMemo(() => ({ ask: setAsking, tell, done }), [tell, done])
  return (
    <Context.Provider value={value}>
      {children}
      {asking && <Confirm ask={asking} onClose={() => setAsking(null)} onDone={tell} />}
      <div className="toast" role="status" aria-live="polite">{said && <p>{said}</p>}</div>
    </Context.Provider>
  )
}
