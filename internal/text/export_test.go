package text

import apportionv1 "github.com/apportion/apportion/gen/apportion/v1"

// Finding is a check of a job by itself.
func Finding(names Names, e *apportionv1.Explanation, f *apportionv1.Finding) string {
	c := checked{names: names, job: e, finding: f}
	return Sentence(c.found())
}

// Explanation is the text of an explanation whose findings have theirs.
func Explanation(names Names, e *apportionv1.Explanation) string {
	return Sentence(explanation(names, e))
}
