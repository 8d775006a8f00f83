package model

import "fmt"

// claim is the position at which a job is set or removed.
type claim struct {
	at      int32
	removed bool
}

func (c claim) String() string {
	if c.removed {
		return fmt.Sprintf("remove_jobs[%d]", c.at)
	}
	return fmt.Sprintf("jobs[%d].uid", c.at)
}

// claims are the jobs of the base that a change sets or removes.
type claims struct {
	// set has a bit for each job of the base.
	set  []uint64
	list []claimed
}

type claimed struct {
	job JobID
	by  claim
}

// expect reserves memory for n more.
func (c *claims) expect(n int) { c.list = room(c.list, n) }

// has reports whether a job of the base is claimed.
func (c *claims) has(j JobID) bool { return c.set != nil && c.set[j>>6]>>(j&63)&1 != 0 }

// add claims one of n jobs.
func (c *claims) add(j JobID, by claim, n int) {
	if c.set == nil {
		c.set = make([]uint64, (n+63)>>6)
	}
	c.set[j>>6] |= 1 << (j & 63)
	c.list = append(c.list, claimed{j, by})
}

// of returns the claim of a claimed job. Only error paths need it.
func (c *claims) of(j JobID) claim {
	for i := range c.list {
		if c.list[i].job == j {
			return c.list[i].by
		}
	}
	return claim{}
}
