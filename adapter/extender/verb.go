package extender

// verb is a function of Volcano's extender plugin, by the name that follows the path in the URL.
type verb string

// The verbs, as the keys of the plugin's arguments name them: extender.onSessionOpenVerb, extender.predicateVerb, ….
const (
	onSessionOpen  verb = "onSessionOpen"
	onSessionClose verb = "onSessionClose"
	predicate      verb = "predicate"
	prioritize     verb = "prioritize"
	preemptable    verb = "preemptable"
	reclaimable    verb = "reclaimable"
	queueOverused  verb = "queueOverused"
	jobEnqueueable verb = "jobEnqueueable"
	jobEnqueued    verb = "jobEnqueued"
	jobReady       verb = "jobReady"
	allocate       verb = "allocate"
	deallocate     verb = "deallocate"
)

// noOpinion is the answer to each question that leaves the decision to Volcano's other plugins. An empty list of victims has no effect with
// status 0; nodeScore must be present even if empty; the answer "not ready" would hold a job back; Volcano rolls back an event that fails.
var noOpinion = map[verb]string{
	onSessionOpen:  "",
	onSessionClose: "",
	predicate:      `{"status":"","code":0}`,
	prioritize:     `{"nodeScore":{},"errorMessage":""}`,
	preemptable:    `{"status":0,"victims":[]}`,
	reclaimable:    `{"status":0,"victims":[]}`,
	queueOverused:  `{"overused":false}`,
	jobEnqueueable: `{"status":0}`,
	jobEnqueued:    `{}`,
	jobReady:       `{"status":true}`,
	allocate:       `{"errorMessage":""}`,
	deallocate:     `{"errorMessage":""}`,
}

// unresolvable is the code of a predicate's refusal that evictions cannot remove: the group of a node does not change.
const unresolvable = 3
