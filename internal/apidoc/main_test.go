package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func written(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/api/apportion.v1.md")
	require.NoError(t, err)
	return string(data)
}

func TestEveryLinkLeadsToAHeading(t *testing.T) {
	text, headings := written(t), map[string]bool{}
	for line := range strings.Lines(text) {
		if marks, heading, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.Trim(marks, "#") == "" {
			anchor := anchorOf(strings.ReplaceAll(heading, " ", "-"))
			require.False(t, headings[anchor], "two headings %s", anchor)
			headings[anchor] = true
		}
	}
	links := regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(text, -1)
	require.Greater(t, len(links), 100)
	for _, link := range links {
		require.Contains(t, headings, link[1])
	}
}

func TestEveryCallAndEveryStepIsDescribed(t *testing.T) {
	text := written(t)
	methods := apportionv1.File_apportion_v1_service_proto.Services().Get(0).Methods()
	for i := range methods.Len() {
		require.Contains(t, text, "\n### rpc "+string(methods.Get(i).Name())+"\n")
	}
	steps := (&apportionv1.Step{}).ProtoReflect().Descriptor().Fields()
	for i := range steps.Len() {
		require.Contains(t, text, "\n### "+string(steps.Get(i).Message().Name())+"\n")
		require.Contains(t, text, "| `"+string(steps.Get(i).Name())+"` |")
	}
}

func TestEveryFieldIsDescribed(t *testing.T) {
	fields := regexp.MustCompile("(?m)^\\| \\d+ \\| (`\\w+`) \\| ([^|]+) \\| (.*) ?\\|$").FindAllStringSubmatch(written(t), -1)
	require.Greater(t, len(fields), 300)
	for _, field := range fields {
		_, note, ok := strings.Cut(field[3], ".* ")
		if !strings.HasPrefix(field[3], "*One of") || !ok {
			note = field[3]
		}
		require.NotEmpty(t, strings.TrimSpace(note), field[0])
		require.False(t, strings.HasPrefix(note, "*One of"), field[0])
	}
}

func TestAHeadingIsClaimedOnce(t *testing.T) {
	r := reference{pkg: "p", own: map[string]string{}}
	require.NoError(t, r.claim("p.Queue"))
	require.ErrorContains(t, r.claim("p.QUEUE"), "same anchor")
	require.Equal(t, "[Queue](#queue)", r.link("p.Queue"))
	require.Equal(t, "`google.rpc.Status`", r.link("google.rpc.Status"))
}
