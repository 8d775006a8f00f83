package fair

// formed are the claims of one version of the accounts.
type formed struct {
	version uint64
	known   bool
	// claimed is a row for each place: what a leaf claims, or what the children of a place withhold. withheld is what all others must leave
	// to the place: its claims and, where guarantees are reserved, at least what it lacks of its guarantee.
	claimed, withheld []int64
	// saved is a row for each leaf: the part of its claims that waits for tasks to end. nil without a memory.
	saved []int64
	// unused counts the claims that were formed since these were last asked for.
	unused int
}

// patience limits how often claims replace newer ones before those of the older version are given up.
const patience = 8

// recall reports whether claims of a version are kept, and makes them the present ones.
func (c *claims) recall(version uint64) bool {
	if c.known && c.version == version {
		return true
	}
	for i := range c.kept {
		if f := &c.kept[i]; f.known && f.version == version {
			f.unused = 0
			c.formed = *f
			return true
		}
	}
	return false
}

// begin makes room for the claims of a version. What is tried and rolled back again and again returns to one version: of two that are kept
// the newer one is replaced, unless the older one is not used any more.
func (c *claims) begin(version uint64, cells int, saves bool) {
	older, newer := &c.kept[0], &c.kept[1]
	if newer.known && newer.version < older.version {
		older, newer = newer, older
	}
	older.unused++
	f := newer
	if !older.known || newer.known && older.unused > patience {
		f = older
	}
	if f.claimed == nil {
		both := make([]int64, 2*cells)
		f.claimed, f.withheld = both[:cells], both[cells:]
		if saves {
			f.saved = make([]int64, cells)
		}
	}
	f.version, f.known, f.unused = version, true, 0
	c.formed = *f
}

// forget gives up all claims.
func (c *claims) forget() {
	c.known, c.kept[0].known, c.kept[1].known = false, false, false
}
