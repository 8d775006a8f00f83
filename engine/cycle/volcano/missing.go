package volcano

import "github.com/apportion/apportion/engine/model"

func (r *run) neverPreempts(model.TaskID) bool                          { return false }
func (r *run) jobPreemptable(model.JobID) bool                          { return true }
func (r *run) victimTasks([]model.TaskID) []model.TaskID                { return nil }
func (r *run) evictable(_ model.JobID, c []model.TaskID) []model.TaskID { return c }
