package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/service"
)

func TestSettingsOfTheServerHaveTheDefaultsOfTheServer(t *testing.T) {
	c := Default()
	require.Equal(t, service.DefaultOptions(), c.ServerOptions())
}
