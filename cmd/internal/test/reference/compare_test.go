package reference

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// decoded is JSON as a case file holds it.
func decoded(t *testing.T, text string) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

func TestAnswersAreComparedLeafByLeaf(t *testing.T) {
	tests := map[string]struct {
		want           string
		got            any
		answers, equal int
		pointers       []string
	}{
		"numbers agree within a billionth of their size": {
			want: `{"a": 1e12, "b": 1e12}`, got: object{"a": 1e12 + 999, "b": 1e12 + 1001}, answers: 2, equal: 1, pointers: []string{"/b"},
		},
		"beside a 0 the billionth is absolute": {
			want: `[0, 0, 1e-9]`, got: []any{0.9e-9, 1.1e-9, 0.0}, answers: 3, equal: 2, pointers: []string{"/1"},
		},
		"small numbers are not 0":              {want: `1e-12`, got: 2e-12, answers: 1, pointers: []string{""}},
		"no number is a number":                {want: `1`, got: math.NaN(), answers: 1, pointers: []string{""}},
		"truth values and names agree exactly": {want: `[true, "q"]`, got: []any{false, "Q"}, answers: 2, pointers: []string{"/0", "/1"}},
		"a truth value is no text":             {want: `true`, got: "true", answers: 1, pointers: []string{""}},
		"what we lack is different, leaf for leaf": {
			want: `{"a": {"b": [1, 2]}, "c": 3}`, got: object{"c": 3.0}, answers: 3, equal: 1, pointers: []string{"/a/b/0", "/a/b/1"},
		},
		"what only we have is different": {
			want: `{"c": 3, "list": [1]}`, got: object{"c": 3.0, "x/y": true, "list": []any{1.0, 2.0}},
			answers: 4, equal: 2, pointers: []string{"/list/1", "/x~1y"},
		},
		"an absent container is as good as an empty one": {want: `{"a": {}, "b": []}`, got: object{}, answers: 0},
		"null is an answer, and means an empty list":     {want: `[null, null]`, got: []any{[]any{}, nil}, answers: 2, equal: 2},
		"null is no list with something in it":           {want: `{"v": null}`, got: object{"v": []any{"t"}}, answers: 1, pointers: []string{"/v"}},
		"a dimension that is missing is not one of 0": {
			want: `{"v": {"cpu": 0, "memory": 0}}`, got: amounts{"cpu": 0, "memory": 0, "pods": 0}, answers: 3, equal: 2, pointers: []string{"/v/pods"},
		},
		"a dimension too few": {
			want: `{"v": {"cpu": 0, "memory": 0, "pods": 0}}`, got: amounts{"cpu": 0, "memory": 0}, answers: 3, equal: 2, pointers: []string{"/v/pods"},
		},
		"unlimited is unlimited": {
			want: `{"v": {"cpu": 5}, "unlimited": ["memory", "pods"]}`, got: amounts{"cpu": 5, "memory": math.Inf(1), "pods": math.MaxFloat64},
			answers: 3, equal: 2, pointers: []string{"/unlimited/pods"},
		},
		"a number is not unlimited": {
			want: `{"v": {"cpu": 5}}`, got: amounts{"cpu": math.Inf(1)}, answers: 1, pointers: []string{"/v/cpu"},
		},
		"nil is no resource": {want: `{"v": {"cpu": 0, "memory": 0}}`, got: nil, answers: 2, pointers: []string{""}},
		"a failure in place of answers": {
			want: `{"a": {"b": 1, "c": 2}}`, got: object{"a": "error"}, answers: 2, pointers: []string{"/a"},
		},
		"answers in place of a failure": {
			want: `{"a": "no such task"}`, got: object{"a": object{"b": 1.0}}, answers: 1, pointers: []string{"/a"},
		},
		"order matters": {want: `["a", "b"]`, got: []any{"b", "a"}, answers: 2, pointers: []string{"/0", "/1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := comparison{judge: &judge{script: &Script{}}, unheld: map[Rule]int{}}
			c.tree("", nil, decoded(t, test.want), []any{test.got})
			require.Equal(t, test.answers, c.answers)
			require.Equal(t, test.equal, c.equal)
			require.Equal(t, test.pointers, pointers(c.differ))
		})
	}
}

func pointers(differences []Difference) []string {
	var found []string
	for _, d := range differences {
		found = append(found, d.Pointer)
	}
	return found
}

func TestAnAnswerIsEqualOnlyIfItIsEqualAlongAllWays(t *testing.T) {
	c := comparison{judge: &judge{script: &Script{}}, unheld: map[Rule]int{}}
	want := decoded(t, `{"a": 1, "b": 2, "c": 3}`)
	c.tree("", nil, want, []any{object{"a": 1.0, "b": 2.0, "c": 3.0}, object{"a": 1.0, "b": 5.0, "d": 4.0}})
	require.Equal(t, 4, c.answers)
	require.Equal(t, 1, c.equal)
	require.Equal(t, []string{"/b", "/c", "/d"}, pointers(c.differ))
	require.Equal(t, "2 by x, 5 by y", gotText(c.differ[0], []Way{{Name: "x"}, {Name: "y"}}))
	require.Equal(t, "3 by x, nothing by y", gotText(c.differ[1], []Way{{Name: "x"}, {Name: "y"}}))
}

func TestOnlyAnswersOfTheKindWantedAreCompared(t *testing.T) {
	c := comparison{judge: &judge{script: &Script{}}, only: "/share", unheld: map[Rule]int{}}
	want := decoded(t, `{"queues": {"q": {"share": 1, "weight": 2}}, "valid": {"message": "x"}}`)
	c.tree("", nil, want, []any{object{"queues": object{"q": object{"share": 1.0, "weight": 7.0}}}})
	require.Equal(t, 1, c.answers)
	require.Empty(t, c.differ)
	require.Empty(t, c.unheld)
}

func TestComparisonsCountBySign(t *testing.T) {
	c := comparison{judge: &judge{script: &Script{}}, unheld: map[Rule]int{}}
	c.tree("", nil, decoded(t, `[{"cmp": -7}, {"cmp": 2}, {"cmp": 0}]`), []any{[]any{object{"cmp": -1.0}, object{"cmp": 1.0}, object{"cmp": 0.0}}})
	require.Equal(t, 3, c.equal)
}
