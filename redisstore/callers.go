package redisstore

import "sync"

// callers numbers those of a process that take jobs at a time: what each began last is remembered under its number, so that
// the repeat of a call whose answer was lost begins no other.
type callers struct {
	process string // a random name

	mu   sync.Mutex
	free []int
	most int
}

func (c *callers) enter() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		number := c.free[n-1]
		c.free = c.free[:n-1]
		return number
	}
	c.most++
	return c.most
}

func (c *callers) leave(number int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, number)
}
