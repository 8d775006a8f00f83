package ledger

import "slices"

// line is what tasks are charged to: a path of queues and an owner. Records and cells name it by its number.
type line struct {
	path  []string
	owner string
	// active lines have a record, or usage that counts.
	active bool
}

// lines are the lines of a ledger. The number of a line that nothing uses any more is given to another line.
type lines struct {
	list   []line
	number map[string]int32
	// free are the numbers of lines that are forgotten. Their paths are empty.
	free []int32
	// owners counts the active lines of a queue.
	owners map[string]int
	// crowded is true if an owner was not told apart since lines were forgotten last, and checked how many lines there were then.
	crowded bool
	checked int
	// changed are the lines that are not stored yet.
	changed map[int32]struct{}
}

func newLines() lines {
	return lines{number: map[string]int32{}, owners: map[string]int{}, changed: map[int32]struct{}{}}
}

// of returns the number of a line, adding it if it is new.
func (l *lines) of(path []string, owner string) int32 {
	text := lineText(path, owner)
	n, known := l.number[text]
	if !known {
		n = l.place()
		l.number[text] = n
		l.list[n] = line{path: slices.Clone(path), owner: owner}
		l.changed[n] = struct{}{}
	}
	l.activate(n)
	return n
}

// place returns a number that no line has.
func (l *lines) place() int32 {
	if last := len(l.free) - 1; last >= 0 {
		n := l.free[last]
		l.free = l.free[:last]
		return n
	}
	l.list = append(l.list, line{})
	return int32(len(l.list) - 1)
}

func (l *lines) activate(n int32) {
	if own := &l.list[n]; !own.active && len(own.path) > 0 {
		own.active = true
		l.owners[own.path[0]]++
	}
}

// maxOwners is the number of owners of a queue that a ledger tells apart at a time in the snapshots that it follows.
const maxOwners = 4096

// follow is of for an owner whose name a tenant chooses, which may differ for each job. What owners beyond maxOwners use is charged to the
// queue alone, until names without usage are forgotten.
func (l *lines) follow(path []string, owner string) int32 {
	n, known := l.number[lineText(path, owner)]
	if known && l.list[n].active || l.owners[path[0]] < maxOwners {
		return l.of(path, owner)
	}
	l.crowded = true
	return l.of(path, "")
}

// due reports whether lines should be forgotten: an owner found no room, or there are twice as many as the last time.
func (l *lines) due() bool {
	const few = 1024
	return l.crowded || len(l.list)-len(l.free) > max(few, 2*l.checked)
}

// forget frees the lines that are not used, and counts the active ones.
func (l *lines) forget(used, active []bool) {
	clear(l.owners)
	for n := range l.list {
		own := &l.list[n]
		own.active = false
		switch {
		case len(own.path) == 0:
		case active[n]:
			l.activate(int32(n))
		case !used[n]:
			delete(l.number, lineText(own.path, own.owner))
			l.list[n] = line{}
			l.free = append(l.free, int32(n))
			l.changed[int32(n)] = struct{}{}
		}
	}
	l.crowded, l.checked = false, len(l.list)-len(l.free)
}

// forget frees the lines that no task and no epoch uses that the ledger keeps. Those whose usage does not count any more, because it is
// older than the window, stay for reports and are not active.
func (l *Ledger) forget() {
	used, active := make([]bool, len(l.lines.list)), make([]bool, len(l.lines.list))
	for _, r := range l.records {
		used[r.line], active[r.line] = true, true
	}
	for n, b := range l.cells {
		counts := n >= l.sealed-int64(l.options.Window)
		_ = b.each(len(used), func(to int32, _ []Amount) {
			used[to], active[to] = true, active[to] || counts
		})
	}
	l.lines.forget(used, active)
}

// lineText joins a path and an owner such that no two lines are alike.
func lineText(path []string, owner string) string {
	var w writer
	w.list(path)
	w.text(owner)
	return string(w.data)
}

// load adds a stored line, which has the next number. One without a path is free.
func (l *lines) load(n uint32, path []string, owner string) bool {
	if int(n) != len(l.list) {
		return false
	}
	l.list = append(l.list, line{path: path, owner: owner})
	if len(path) == 0 {
		l.free = append(l.free, int32(n))
		return true
	}
	text := lineText(path, owner)
	if _, twice := l.number[text]; twice {
		return false
	}
	l.number[text] = int32(n)
	// Whether it is active is not known before the cells are read: until lines are forgotten it counts.
	l.activate(int32(n))
	return true
}
