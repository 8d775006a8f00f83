package account

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Changing holds the rows of those queues for which they differ from the model's, which are few in most sessions. The zero value holds
// none.
type Changing struct{ rows []resource.Row }

// At returns the row of a queue; otherwise is the model's row.
func (c *Changing) At(q model.QueueID, otherwise resource.Row) resource.Row {
	if c.rows == nil || c.rows[q].Absent() {
		return otherwise
	}
	return c.rows[q]
}

// Change returns the row of a queue for writing, and saves it to the journal of the view.
func (c *Changing) Change(v *policy.View, q model.QueueID, otherwise resource.Row) *resource.Row {
	if c.rows == nil {
		c.rows = make([]resource.Row, len(v.Queues))
	}
	row := &c.rows[q]
	if row.Absent() {
		*row = otherwise.Clone()
	}
	v.Journal.Row(row)
	return row
}
