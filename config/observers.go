package config

import "strconv"

// observers checks the settings of the decision log and of the shadow policy.
func (c *checker) observers() {
	l := c.DecisionLog
	const file = "file"
	switch {
	case l.Sink == file && l.File == "":
		c.fail("decision_log.file", "a file is expected, because entries are to go to one")
	case l.Sink != file && l.File != "":
		c.fail("decision_log.file", "means something only with decision_log.sink: file")
	}
	if l.Store != "" && len(l.Mask) > 0 {
		c.fail("decision_log.mask", "snapshots are kept as they are: leave out decision_log.store, or mask nothing")
	}
	for path, name := range map[string]string{"shadow.policy": c.Shadow.Policy, "shadow.of": c.Shadow.Of} {
		if _, ok := c.Policies[name]; name != "" && !ok {
			c.fail(path, "no policy "+strconv.Quote(printable(name))+" is configured")
		}
	}
	if c.Shadow.Policy == "" && c.Shadow.Of != "" {
		c.fail("shadow.of", "means something only with shadow.policy")
	}
}
